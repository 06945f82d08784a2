import type { Extension, ExtensionDefinition, ExtensionServices } from '../core/ports/extension.ts';
import compose from './compose-ssh/index.ts';
import docker from './docker/index.ts';
import local from './local/index.ts';
import saasStub from './saas-stub/index.ts';
import ssh from './ssh/index.ts';

/** List of the extensions that come with sand-boxer. */
export const BUILTINS = [local, docker, compose, ssh, saasStub] as const;

type Builtin = (typeof BUILTINS)[number];
type Underscored<Name extends string> = Name extends `${infer Head}-${infer Tail}`
  ? `${Head}_${Underscored<Tail>}`
  : Name;
type SettingOf<Id extends string> = Id extends `ext.${infer Name}` ? Underscored<Name> : never;
type Schemas = { [Each in Builtin as SettingOf<Each['id']>]: Each['config'] };

/** Returns the name of an extension in the configuration: `compose_ssh` for `ext.compose-ssh`. */
export function settingOf<Id extends string>(id: Id): SettingOf<Id> {
  return id.slice('ext.'.length).replaceAll('-', '_') as SettingOf<Id>;
}

/** Returns the schemas of the settings under `extensions` in a configuration. */
export function builtinConfig(): Schemas {
  return Object.fromEntries(BUILTINS.map(({ id, config }) => [settingOf(id), config])) as Schemas;
}

export type BuiltinsConfig = { readonly [Name in keyof Schemas]: Schemas[Name]['_zod']['output'] };

export async function builtinExtensions(
  config: BuiltinsConfig,
  services: ExtensionServices,
): Promise<Extension[]> {
  const found: Extension[] = [];
  for (const definition of BUILTINS as readonly ExtensionDefinition<Builtin['id']>[])
    found.push(...(await definition.create(config[settingOf(definition.id)], services)));
  return found;
}
