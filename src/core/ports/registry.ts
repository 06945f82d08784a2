import type { ExtensionHealth } from '../../contract/extensions/extension.ts';
import type { Extension } from './extension.ts';

/** The backends of this installation and what is known of their health. */
export interface ExtensionRegistry {
  get(id: string): Extension | undefined;
  all(): readonly Extension[];
  health(id: string): ExtensionHealth;
  /** Changes whenever the set of backends or one of their vectors or prices does. */
  readonly version: string;
}
