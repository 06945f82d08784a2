import type { ImageConfig, ImageSource } from '../../contract/assets/image.ts';
import type { KeptResource } from './kept-resource.ts';

export interface ImageRecord extends KeptResource {
  readonly extensionId: string;
  readonly digest: string | null;
  readonly architecture: string;
  readonly sizeBytes: number;
  readonly source: ImageSource;
  readonly config: ImageConfig;
}

/** `name@sha256:…`: what is pinned. */
export function imageReference({ name, digest }: Pick<ImageRecord, 'name' | 'digest'>): string | null {
  return digest === null ? null : `${name}@${digest}`;
}
