import { existsSync, readFileSync } from 'node:fs';
import { findPackageJSON } from 'node:module';
import { dirname, isAbsolute, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { z } from 'zod';
import { SandboxerError } from '../contract/errors/errors.ts';
import { CapabilityVector } from '../contract/extensions/capability.ts';
import type { Extension, ExtensionDefinition, ExtensionServices } from '../core/ports/extension.ts';
import { BUILTINS } from './builtins.ts';

const Name = z
  .string()
  .min(1)
  .max(1024)
  .refine(
    (name) => isAbsolute(name) || /^(?:@[a-z0-9][\w.-]*\/)?[a-z0-9][\w.-]*$/.test(name),
    'Write the name of an installed package, or the absolute path of its folder.',
  );

/** Packages of third parties whose default export is an extension’s definition. */
export const PackagesConfig = z
  .array(z.union([Name, z.strictObject({ name: Name, config: z.unknown().optional() })]))
  .max(64)
  .default([])
  .describe(
    'Packages that bring an extension: the name of an installed one, the absolute path of one, or `{ name, config }` with the configuration that its definition describes. A name is looked for from the folder of the configuration file, then from sand-boxer itself. Its code runs in the server.',
  );

const isFunction = (value: unknown) => typeof value === 'function';
const Method = z.custom(isFunction, 'There is no such function.');

/** The parts of a definition that are checked before it creates an extension. */
const Definition = z.looseObject({
  id: z.string().regex(/^ext\.[a-z0-9]+(?:-[a-z0-9]+)*$/, 'Write an id such as "ext.acme-cells".'),
  title: z.string().min(1).max(200),
  config: z.looseObject({ safeParse: Method }),
  bestOn: z.string().nullable(),
  capabilitiesAtBest: CapabilityVector,
  handle: z.looseObject({ version: z.number().int().min(1), read: Method, write: Method }),
  create: Method,
});

const PUBLISH = 'See docs/contributing/add-an-extension.md for what such a package exports.';

function invalid(field: string, problem: string, remedy: string, cause?: unknown): SandboxerError {
  return new SandboxerError('SBX_CONFIG_INVALID', `The configuration: ${field}: ${problem}`, {
    field,
    remedy,
    ...(cause === undefined ? {} : { cause }),
  });
}

type Exports = string | { readonly [condition: string]: Exports } | undefined;

/** Returns the module that `import` of a package loads, as far as its package.json names it without patterns. */
function entryOf(exports: Exports): string | undefined {
  if (exports === undefined || typeof exports === 'string') return exports;
  return entryOf(exports['.'] ?? exports.node ?? exports.import ?? exports.default);
}

/** Returns the package.json of a package, from the first folder that has it. */
function packageJsonOf(name: string, folders: readonly string[]): string | undefined {
  if (isAbsolute(name)) {
    const path = join(name, 'package.json');
    return existsSync(path) ? path : undefined;
  }
  for (const folder of folders) {
    try {
      const path = findPackageJSON(name, pathToFileURL(join(folder, 'any.js')));
      if (path !== undefined) return path;
    } catch {
      // The package is not in this folder.
    }
  }
  return undefined;
}

async function moduleOf(name: string, folders: readonly string[], field: string): Promise<unknown> {
  const path = packageJsonOf(name, folders);
  if (path === undefined)
    throw invalid(
      field,
      `there is no package "${name}"`,
      `Install it in ${folders[0]}, or name the absolute path of its folder.`,
    );
  try {
    const { exports, main } = JSON.parse(readFileSync(path, 'utf8')) as { exports?: Exports; main?: string };
    const entry = join(dirname(path), entryOf(exports) ?? main ?? 'index.js');
    return await import(pathToFileURL(entry).href);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw invalid(field, `the package "${name}" cannot be loaded: ${reason}`, PUBLISH, error);
  }
}

function definitionIn(module: unknown, name: string, field: string): ExtensionDefinition {
  const value: unknown = (module as { default?: unknown }).default;
  if (value === undefined || value === null || typeof value !== 'object')
    throw invalid(field, `the package "${name}" has no definition as its default export`, PUBLISH);
  const parsed = Definition.safeParse(value);
  if (parsed.success) return value as ExtensionDefinition;
  const [issue] = parsed.error.issues;
  const at = issue?.path.join('.') ?? '';
  throw invalid(field, `the definition in "${name}" is not valid: ${at}: ${issue?.message}`, PUBLISH);
}

export interface PackageSources {
  /** Folders to search for names, first to last. */
  readonly folders: readonly string[];
  readonly services: ExtensionServices;
}

/** Loads the packages in order and creates their extensions from their configuration. */
export async function packagedExtensions(
  packages: z.output<typeof PackagesConfig>,
  { folders, services }: PackageSources,
): Promise<Extension[]> {
  const made: Extension[] = [];
  const taken = new Map<string, string>(BUILTINS.map(({ id }) => [id, 'an extension of sand-boxer itself']));
  for (const [index, entry] of packages.entries()) {
    const field = `extensions.packages[${index}]`;
    const { name, config: given } = typeof entry === 'string' ? { name: entry, config: undefined } : entry;
    const definition = definitionIn(await moduleOf(name, folders, field), name, field);
    const { id } = definition;
    const other = taken.get(id);
    if (other !== undefined)
      throw invalid(field, `"${id}" of "${name}" is the id of ${other}`, 'Give the extension another id.');
    taken.set(id, `the extension of "${name}"`);
    const parsed = definition.config.safeParse(given);
    if (!parsed.success) {
      const [issue] = parsed.error.issues;
      const at = [`${field}.config`, ...(issue?.path ?? [])].join('.');
      throw invalid(at, issue?.message ?? 'it is not valid', `Correct it for the package "${name}".`);
    }
    const extensions = await definition.create(parsed.data, services);
    const strange = extensions.find(({ header }) => header.id !== id && !header.id.startsWith(`${id}#`));
    if (strange !== undefined)
      throw invalid(field, `"${name}" made "${strange.header.id}", and not "${id}"`, 'Correct the package.');
    made.push(...extensions);
  }
  return made;
}
