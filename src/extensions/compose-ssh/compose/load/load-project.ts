/**
 * Reads a stack as compose would: its files merged in order, with included and extended ones, variables replaced, profiles
 * chosen. The result names no other file any more, except those that services mount or build from.
 */

import { RESERVED_NAME, SERVICE_NAME } from '../shapes/words.ts';
import type { PathRef } from '../tree/tree-path.ts';
import { pathRef } from '../tree/tree-path.ts';
import type { TreeView } from '../tree/tree-view.ts';
import { directoryOf, realInTree } from '../tree/tree-view.ts';
import type { Tree } from '../yaml/compose-yaml.ts';
import { isTree } from '../yaml/compose-yaml.ts';
import type { Findings } from '../yaml/finding.ts';
import { invalidStack } from '../yaml/finding.ts';
import { listOf, textOf } from '../yaml/scalars.ts';
import { defaultFiles, FILES_INPUT } from './compose-files.ts';
import { parseEnvFile } from './env-file.ts';
import { interpolateTree, Variables } from './interpolate.ts';
import { mergeTrees } from './merge-services.ts';
import type { EnvFileRef } from './normalise-service.ts';
import { normaliseService } from './normalise-service.ts';
import type { Sections } from './sections.ts';
import { mergeSections, NOTHING, placed, SECTIONS } from './sections.ts';
import { StackBudget } from './stack-budget.ts';

export interface ProjectRequest {
  /** Paths from the top of the tree; empty: the files that compose itself would look for. */
  readonly files: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly profiles: readonly string[];
}

export interface Project {
  readonly services: ReadonlyMap<string, Tree>;
  readonly networks: Tree;
  readonly volumes: Tree;
  /** Secrets, each with its `file` as a `PathRef`. */
  readonly secrets: Tree;
  readonly configs: Tree;
  /** Variables that were named and have no value. */
  readonly unset: readonly string[];
}

const TOP_LEVEL = new Set([
  'version',
  'name',
  'services',
  'networks',
  'volumes',
  'secrets',
  'configs',
  'include',
]);
const MOST_SERVICES = 100;
const DEEPEST = 8;
const MOST_TOLD = 8;

/** The directory to read from, and the variables that apply there. */
interface Around {
  readonly base: string;
  readonly variables: Variables;
  readonly depth: number;
}

interface EnvFileUse {
  readonly service: string | null;
  readonly field: string;
  readonly required: boolean;
}

interface ServicePlace {
  readonly path: PathRef;
  readonly around: Around;
  readonly seen: readonly string[];
}

class Loader {
  readonly #tree: TreeView;
  readonly #findings: Findings;
  readonly #unset = new Set<string>();
  readonly budget = new StackBudget();

  constructor(tree: TreeView, findings: Findings) {
    this.#tree = tree;
    this.#findings = findings;
  }

  get unset(): readonly string[] {
    return [...this.#unset];
  }

  /** Reads a file of the tree; a link that leads out is refused. */
  async text(path: PathRef, service: string | null, field: string): Promise<string | null> {
    const real = 'inside' in path ? realInTree(this.#tree, path.inside) : null;
    if (real === null) {
      const named = 'inside' in path ? path.inside : path.outside;
      // `elevated` does not help: the file would be read from the tree, and a file outside is not in it.
      this.#findings.invalid(
        service,
        field,
        `${named} is outside of the shipped tree.`,
        'Put the file into the repository.',
      );
      return null;
    }
    this.budget.open(field, service);
    const text = await this.#tree.read(real);
    if (text !== null) this.budget.read(text, real, field, service);
    return text;
  }

  async envFile(
    path: PathRef,
    around: Variables,
    { service, field, required }: EnvFileUse,
  ): Promise<Map<string, string>> {
    const text = await this.text(path, service, field);
    if (text !== null) return parseEnvFile(text, around, field);
    if (required && 'inside' in path)
      this.#findings.invalid(
        service,
        field,
        `There is no file ${path.inside} in the shipped tree.`,
        'Ship it, or give the values in the input "env".',
      );
    return new Map();
  }

  async file(path: PathRef, around: Around): Promise<Sections> {
    const name = 'inside' in path ? path.inside : path.outside;
    const { raw, variables } = await this.#parsed(path, around);
    for (const key of Object.keys(raw)) {
      if (!TOP_LEVEL.has(key) && !key.startsWith('x-'))
        this.#findings.invalid(null, key, `${name} has a part that is not understood.`, 'Remove it.');
    }
    if (
      !isTree(raw.services) &&
      raw.include === undefined &&
      raw.version === undefined &&
      Object.values(raw).some((part) => isTree(part) && 'image' in part)
    ) {
      throw invalidStack(
        'services',
        `${name} is of the first compose format.`,
        'Put the services below "services:".',
      );
    }
    let sections = await this.#included(raw.include, around);
    const own: Sections = { ...NOTHING };
    for (const section of SECTIONS) {
      const part = raw[section] ?? {};
      if (!isTree(part))
        throw invalidStack(section, `It is not a mapping in ${name}.`, 'Write "name: {…}" below it.');
      own[section] =
        section === 'services'
          ? await this.#services(part, path, { ...around, variables })
          : placed(section, part, around.base);
    }
    sections = mergeSections(sections, own);
    for (const variable of variables.unset) this.#unset.add(variable);
    return sections;
  }

  async #parsed(path: PathRef, around: Around) {
    const name = 'inside' in path ? path.inside : path.outside;
    const text = await this.text(path, null, name);
    if (text === null)
      throw invalidStack(
        name,
        `There is no ${name} in the shipped tree.`,
        'Name a compose file of the tree in the input "compose_files".',
      );
    return {
      raw: interpolateTree(this.budget.parse(text, name), around.variables),
      variables: around.variables,
    };
  }

  async #included(value: unknown, around: Around): Promise<Sections> {
    let sections: Sections = { ...NOTHING };
    const included = listOf(value);
    if (included.length > 0 && around.depth >= DEEPEST)
      throw invalidStack('include', 'Files include each other too deep.', 'Include fewer levels.');
    for (const [n, item] of included.entries()) {
      const field = `include[${n}]`;
      const entry: Tree = isTree(item) ? item : { path: item };
      const paths = listOf(entry.path).map((path) => textOf(path) ?? '');
      if (paths.some((path) => path === '' || /:\/\/|^git@|^oci:/.test(path))) {
        throw invalidStack(
          field,
          'Only files of the tree can be included.',
          'Put the file into the repository.',
        );
      }
      const [first = ''] = paths;
      const firstRef = pathRef(around.base, first, field);
      const directory = textOf(entry.project_directory);
      const baseRef = directory === null ? firstRef : pathRef(around.base, directory, field);
      if ('outside' in baseRef)
        throw invalidStack(
          field,
          `${baseRef.outside} is outside of the shipped tree.`,
          'Put it into the repository.',
        );
      const base = directory === null ? directoryOf(baseRef.inside) : baseRef.inside;
      let variables = around.variables;
      const envFiles =
        entry.env_file === undefined
          ? [pathRef(base, '.env', field)]
          : listOf(entry.env_file).map((path) =>
              pathRef(around.base, textOf(path) ?? '', `${field}.env_file`),
            );
      for (const path of envFiles)
        variables = variables.over(
          await this.envFile(path, variables, {
            service: null,
            field: `${field}.env_file`,
            required: entry.env_file !== undefined,
          }),
        );
      let part: Sections = { ...NOTHING };
      for (const path of paths) {
        part = mergeSections(
          part,
          await this.file(pathRef(around.base, path, field), { base, variables, depth: around.depth + 1 }),
        );
      }
      for (const section of SECTIONS) {
        const twice = Object.keys(part[section]).find((name) => Object.hasOwn(sections[section], name));
        if (twice !== undefined)
          throw invalidStack(
            `${section}.${twice}`,
            'It is included twice.',
            'Give one of the two another name.',
          );
      }
      sections = mergeSections(sections, part);
    }
    return sections;
  }

  async #services(part: Tree, path: PathRef, around: Around): Promise<Tree> {
    const services: Tree = {};
    for (const name of Object.keys(part)) {
      if (name.startsWith('x-')) continue;
      if (!SERVICE_NAME.test(name) || RESERVED_NAME.test(name))
        throw invalidStack(
          'services',
          `${JSON.stringify(name.slice(0, 64))} is no name of a service.`,
          'Use letters, digits, ".", "_" and "-"; names that begin with "sandboxer-" are ours.',
        );
      services[name] = await this.#service(name, part, { path, around, seen: [] });
    }
    return services;
  }

  /** Returns a service merged over all services that it extends. */
  async #service(name: string, part: Tree, { path, around, seen }: ServicePlace): Promise<Tree> {
    const raw = part[name];
    const { extends: parent, ...own } = isTree(raw) ? raw : {};
    const service = normaliseService(name, isTree(raw) ? own : raw, around.base);
    if (parent === undefined || parent === null) return service;
    const [other, file] = isTree(parent)
      ? [textOf(parent.service), textOf(parent.file)]
      : [textOf(parent), null];
    if (other === null)
      throw invalidStack('extends', 'It names no service.', 'Write "extends: {service: NAME}".', name);
    const here = 'inside' in path ? path.inside : path.outside;
    const mark = `${file ?? here}\n${other}`;
    if (seen.includes(mark) || seen.length >= DEEPEST)
      throw invalidStack('extends', 'It extends itself, or too many others.', 'Shorten the chain.', name);
    const from = file === null ? { part, path, around } : await this.#otherFile(file, name, around);
    if (!Object.hasOwn(from.part, other))
      throw invalidStack(
        'extends',
        `There is no service ${other}${file === null ? '' : ` in ${file}`}.`,
        'Name one that is there.',
        name,
      );
    const base = await this.#service(other, from.part, {
      path: from.path,
      around: from.around,
      seen: [...seen, mark],
    });
    this.budget.take(base, 'extends', name);
    return mergeTrees(base, service);
  }

  async #otherFile(file: string, service: string, around: Around) {
    const path = pathRef(around.base, file, 'extends.file', service);
    if ('outside' in path || realInTree(this.#tree, path.inside) === null) {
      throw invalidStack(
        'extends.file',
        `${file} is outside of the shipped tree.`,
        'Put the file into the repository.',
        service,
      );
    }
    const { raw } = await this.#parsed(path, around);
    const part = isTree(raw.services) ? raw.services : {};
    return { part, path, around: { ...around, base: directoryOf(path.inside) } };
  }
}

/** Returns the services that are in no profile, or in one of the chosen profiles. */
function chosen(services: Tree, profiles: ReadonlySet<string>): Map<string, Tree> {
  const all = Object.entries(services as { [name: string]: Tree });
  const wanted = all.filter(([, { profiles: own }]) => {
    const names = listOf(own).map(String);
    return names.length === 0 || profiles.has('*') || names.some((name) => profiles.has(name));
  });
  return new Map(wanted);
}

/** Fills a name without a value from the variables: compose would take it from the shell that runs it. */
function filledFrom(variables: Variables, values: Tree): Tree {
  return Object.fromEntries(
    Object.entries(values).map(([key, value]) => [key, value ?? variables.get(key) ?? null]),
  );
}

/** Turns `env_file` into `environment`; a name without a value is filled from the variables, or removed. */
async function environmentOf(
  loader: Loader,
  name: string,
  service: Tree,
  variables: Variables,
): Promise<Tree> {
  const { env_file, environment, ...rest } = service;
  const given = new Map<string, unknown>();
  for (const [n, { path, required }] of (listOf(env_file) as EnvFileRef[]).entries()) {
    const read = await loader.envFile(path, variables, { service: name, field: `env_file[${n}]`, required });
    loader.budget.takeCount(read.size, `env_file[${n}]`, name);
    for (const [key, value] of read) given.set(key, value);
  }
  const values: Tree = { ...Object.fromEntries(given), ...(isTree(environment) ? environment : {}) };
  return {
    ...rest,
    environment: filledFrom(variables, values),
    ...(isTree(rest.build) && isTree(rest.build.args)
      ? { build: { ...rest.build, args: filledFrom(variables, rest.build.args) } }
      : {}),
  };
}

export async function loadProject(
  tree: TreeView,
  request: ProjectRequest,
  findings: Findings,
): Promise<Project> {
  const loader = new Loader(tree, findings);
  const given = new Variables(new Map(Object.entries(request.env)));
  const [firstFile] = request.files;
  const startRef = pathRef('', firstFile ?? '', FILES_INPUT);
  const start = firstFile === undefined || 'outside' in startRef ? '' : directoryOf(startRef.inside);
  const dotEnv = await loader.envFile(pathRef(start, '.env', '.env'), given, {
    service: null,
    field: '.env',
    required: false,
  });
  const variables = given.over(dotEnv);
  const files = request.files.length > 0 ? request.files : defaultFiles(tree, variables);
  const firstRef = pathRef('', files[0] ?? '', FILES_INPUT);
  const base = 'inside' in firstRef ? directoryOf(firstRef.inside) : '';
  let sections: Sections = { ...NOTHING };
  for (const file of files)
    sections = mergeSections(
      sections,
      await loader.file(pathRef('', file, FILES_INPUT), { base, variables, depth: 0 }),
    );
  const fromEnv = (variables.get('COMPOSE_PROFILES') ?? '').split(',').filter((name) => name !== '');
  const profiles = new Set(request.profiles.length > 0 ? request.profiles : fromEnv);
  const services = chosen(sections.services, profiles);
  const total = Object.keys(sections.services).length;
  if (services.size === 0) {
    const others = total === 0 ? 'There are no services.' : `All ${total} services wait for a profile.`;
    throw invalidStack(
      'services',
      others,
      total === 0 ? 'Add a service.' : 'Name a profile in the input "profiles".',
    );
  }
  if (services.size > MOST_SERVICES) {
    throw invalidStack(
      'services',
      `There are ${services.size} services; a sandbox has at most ${MOST_SERVICES}.`,
      'Split the stack, or choose a part of it by profiles.',
    );
  }
  for (const [name, service] of services)
    services.set(name, await environmentOf(loader, name, service, variables));
  return {
    services,
    networks: sections.networks,
    volumes: sections.volumes,
    secrets: sections.secrets,
    configs: sections.configs,
    unset: loader.unset.slice(0, MOST_TOLD),
  };
}
