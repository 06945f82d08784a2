/**
 * Normalises a service of one file: short forms become long, lists of pairs become maps, paths start at the top of the tree.
 * Services of two files can then be merged whichever form each used.
 */

import type { PathRef } from '../tree/tree-path.ts';
import { outsideRef, pathRef } from '../tree/tree-path.ts';
import type { Tree } from '../yaml/compose-yaml.ts';
import { isTree } from '../yaml/compose-yaml.ts';
import { invalidStack } from '../yaml/finding.ts';
import { listOf, textOf } from '../yaml/scalars.ts';
import { readMount } from './mount.ts';
import { readPorts } from './port-mapping.ts';

const PAIR_FIELDS = ['environment', 'labels', 'annotations', 'sysctls'] as const;
/** Normalised as a map `name: address`, so that two files can each add hosts. */
const HOST_PAIRS = 'extra_hosts';

export interface EnvFileRef {
  readonly path: PathRef;
  readonly required: boolean;
}

function unusable(service: string, field: string): Error {
  return invalidStack(
    field,
    'It is not of a form that is understood.',
    'See the compose specification for this field.',
    service,
  );
}

/** Returns `NAME=value` lists and maps as a map; a name alone has no value. */
function pairs(value: unknown, service: string, field: string, separator = /=/): Tree {
  if (isTree(value)) {
    return Object.fromEntries(
      Object.entries(value).map(([name, item]) => {
        const text = item === null ? null : Array.isArray(item) ? item.map(String).join(',') : textOf(item);
        if (item !== null && text === null) throw unusable(service, `${field}.${name}`);
        return [name, text];
      }),
    );
  }
  return Object.fromEntries(
    listOf(value).map((item) => {
      const text = textOf(item);
      if (text === null) throw unusable(service, field);
      const at = text.search(separator);
      return at === -1 ? [text, null] : [text.slice(0, at), text.slice(at + 1)];
    }),
  );
}

function envFiles(value: unknown, base: string, service: string): EnvFileRef[] {
  return listOf(value).map((item, n) => {
    const path = textOf(isTree(item) ? item.path : item);
    if (path === null) throw unusable(service, `env_file[${n}]`);
    return {
      path: pathRef(base, path, `env_file[${n}]`, service),
      required: !isTree(item) || item.required !== false,
    };
  });
}

/** `[a, b]` or `{a: {…}}` → `{a: {…}, b: {}}`. */
function namedMap(value: unknown, service: string, field: string): Tree {
  if (isTree(value)) {
    return Object.fromEntries(
      Object.entries(value).map(([name, item]) => {
        if (item !== null && !isTree(item)) throw unusable(service, `${field}.${name}`);
        return [name, item ?? {}];
      }),
    );
  }
  return Object.fromEntries(
    listOf(value).map((item) => {
      const name = textOf(item);
      if (name === null) throw unusable(service, field);
      return [name, {}];
    }),
  );
}

/** Normalises `secrets` and `configs` of a service. */
function grants(value: unknown, service: string, field: string): Tree[] {
  return listOf(value).map((item, n) => {
    const source = textOf(isTree(item) ? item.source : item);
    if (source === null) throw unusable(service, `${field}[${n}]`);
    return isTree(item) ? { ...item, source } : { source };
  });
}

/** Returns the context of a build; it may also be an address of a repository, which the engine would fetch. */
function contextRef(base: string, context: string, service: string): PathRef {
  const field = 'build.context';
  const isAddress = /:\/\/|^git@|^github\.com\//.test(context);
  return isAddress ? outsideRef(context, field, service) : pathRef(base, context, field, service);
}

function build(value: unknown, base: string, service: string): Tree {
  const raw = typeof value === 'string' ? { context: value } : value;
  if (!isTree(raw)) throw unusable(service, 'build');
  const { context, args, labels, extra_hosts, additional_contexts, ...rest } = raw;
  return {
    ...rest,
    context: contextRef(base, textOf(context) ?? '.', service),
    ...(args === undefined ? {} : { args: pairs(args, service, 'build.args') }),
    ...(labels === undefined ? {} : { labels: pairs(labels, service, 'build.labels') }),
    ...(extra_hosts === undefined
      ? {}
      : { extra_hosts: pairs(extra_hosts, service, 'build.extra_hosts', /[:=]/) }),
    ...(additional_contexts === undefined
      ? {}
      : { additional_contexts: pairs(additional_contexts, service, 'build.additional_contexts') }),
  };
}

const LISTS = [
  'cap_add',
  'cap_drop',
  'devices',
  'device_cgroup_rules',
  'dns',
  'dns_opt',
  'dns_search',
  'expose',
  'external_links',
  'group_add',
  'links',
  'profiles',
  'security_opt',
  'tmpfs',
  'volumes_from',
  'label_file',
] as const;

export function normaliseService(name: string, raw: unknown, base: string): Tree {
  if (!isTree(raw)) throw unusable(name, '');
  const service: Tree = Object.fromEntries(
    Object.entries(raw).filter(([key, value]) => !key.startsWith('x-') && value !== null),
  );
  const replace = (field: string, read: (value: unknown) => unknown) => {
    if (service[field] !== undefined) service[field] = read(service[field]);
  };
  for (const field of PAIR_FIELDS) replace(field, (value) => pairs(value, name, field));
  replace(HOST_PAIRS, (value) => pairs(value, name, HOST_PAIRS, /[:=]/));
  for (const field of LISTS) {
    replace(field, (value) =>
      listOf(value).map((item, n) => {
        const text = textOf(item);
        if (text === null && field !== 'devices') throw unusable(name, `${field}[${n}]`);
        return text ?? item;
      }),
    );
  }
  for (const field of ['networks', 'depends_on']) replace(field, (value) => namedMap(value, name, field));
  for (const field of ['secrets', 'configs']) replace(field, (value) => grants(value, name, field));
  replace('env_file', (value) => envFiles(value, base, name));
  replace('build', (value) => build(value, base, name));
  replace('volumes', (value) => listOf(value).map((item, n) => readMount(item, base, name, n)));
  replace('ports', (value) => listOf(value).flatMap((item, n) => readPorts(item, name, n)));
  return service;
}
