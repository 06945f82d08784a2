import type { KeptResource } from './kept-resource.ts';

export interface VolumeRecord extends KeptResource {
  readonly extensionId: string;
  /** `null`: as much as there is. */
  readonly sizeMb: number | null;
  readonly labels: Readonly<Record<string, string>>;
}
