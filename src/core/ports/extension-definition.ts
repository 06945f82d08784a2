/**
 * An extension as one value: its data, and how it is made. The schema of the configuration, the entry in the registry and the
 * reference pages are derived from it.
 */
import type { z } from 'zod';
import type { CapabilityVector } from '../../contract/extensions/capability.ts';
import type { Extension } from './extension.ts';
import type { VersionedHandle } from './versioned-handle.ts';

/** The place of a secret's value. */
export interface SecretPlace {
  readonly provider: string;
  readonly key: string;
}

/** The services of the server for an extension that it makes. */
export interface ExtensionServices {
  /** The state directory of the server. An extension keeps its files in a folder of its own below it. */
  readonly stateDir: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Returns the value of a secret of the server, fetched anew at each call. */
  secret(place: SecretPlace, signal: AbortSignal): Promise<string>;
}

export interface ExtensionDefinition<
  Id extends string = string,
  Config extends z.ZodType = z.ZodType,
  Input = unknown,
  Output = unknown,
> {
  /** `ext.<name>`, the name in lower-case letters, digits and "-". */
  readonly id: Id;
  readonly title: string;
  /** The schema of the configuration. It accepts `undefined`: the configuration is left out. */
  readonly config: Config;
  /** The surroundings that `capabilitiesAtBest` needs; `null` where nothing is needed. */
  readonly bestOn: string | null;
  /** The vector in the best surroundings: `header.capabilities` of what is made may declare less. */
  readonly capabilitiesAtBest: CapabilityVector;
  readonly handle: VersionedHandle<Input, Output>;
  /**
   * Makes what the configuration asks for: nothing where it is turned off, several where it names several instances,
   * whose ids are `id` or begin with `id#`. Modules that do IO are loaded here, by `import()`.
   */
  create(config: z.output<Config>, services: ExtensionServices): Promise<readonly Extension[]>;
}

/** Returns the definition as it is, with `create` typed by the schema. */
export function defineExtension<const Id extends string, Config extends z.ZodType, Input, Output>(
  definition: ExtensionDefinition<Id, Config, Input, Output>,
): ExtensionDefinition<Id, Config, Input, Output> {
  return definition;
}
