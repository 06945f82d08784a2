/**
 * Stacks for tests: every field of the model, one at a time, and every text in it, so that a hostile text can take every place
 * that a compose file has.
 */

import { NETWORK, VOLUME } from '../shapes/section-shapes.ts';
import type { Tree } from '../yaml/compose-yaml.ts';
import { isTree } from '../yaml/compose-yaml.ts';
import { SERVICE_FIELDS } from './read-service.ts';

/** Files that the stacks below name. */
export const HOSTILE_TREE = {
  'app.env': 'GIVEN=1\n',
  'other.yml': 'services: {base: {image: box, environment: {BASE: "1"}}}',
  'dir/file': 'content\n',
  Dockerfile: 'FROM box\n',
  'dir/Dockerfile': 'FROM box\n',
  leads: '-> dir/file',
} as const;

export interface Site {
  /** Path of the place: `services.web.healthcheck.interval`; of a name: `services.web.environment.{NAME}`. */
  readonly path: string;
  /** The text at that place in the example. */
  readonly example: string;
  /** Returns the stack with another text at that place. */
  with(text: string): Tree;
}

function base(): { [section: string]: Tree } {
  return {
    services: { web: { image: 'box' }, base: { image: 'box' }, db: { image: 'box' } },
    networks: { front: {} },
    volumes: { data: {} },
    secrets: { token: { file: './dir/file' } },
    configs: { settings: { content: 'some text' } },
  };
}

type Place = { readonly path: string; readonly example: string; with(text: string): unknown };

/** Returns the place of every text and every key of a value, each to be replaced alone. */
function placesIn(value: unknown, path: string): Place[] {
  if (typeof value === 'string' || typeof value === 'number')
    return [{ path, example: String(value), with: (text) => text }];
  if (Array.isArray(value))
    return value.flatMap((item, n) =>
      placesIn(item, `${path}[${n}]`).map((place) => ({
        ...place,
        with: (text: string) => value.with(n, place.with(text)),
      })),
    );
  if (!isTree(value)) return [];
  return Object.entries(value).flatMap(([key, item]) => {
    const { [key]: _, ...others } = value;
    return [
      { path: `${path}.{${key}}`, example: key, with: (text: string) => ({ ...others, [text]: item }) },
      ...placesIn(item, `${path}.${key}`).map((place) => ({
        ...place,
        with: (text: string) => ({ ...value, [key]: place.with(text) }),
      })),
    ];
  });
}

/** Fields whose examples are items of a list. */
const LISTS = new Set(['volumes', 'ports', 'secrets', 'configs', 'env_file']);

function serviceSites(): Site[] {
  return Object.entries(SERVICE_FIELDS).flatMap(([field, examples]) =>
    examples.flatMap((example) =>
      placesIn(LISTS.has(field) ? [example] : example, `services.web.${field}`).map((place) => ({
        ...place,
        with: (text: string) => {
          const stack = base();
          const web = { image: 'box', [field]: place.with(text) };
          return { ...stack, services: { ...stack.services, web } };
        },
      })),
    ),
  );
}

function sectionSites(): Site[] {
  const examples = {
    networks: Object.entries(NETWORK).flatMap(([field, shape]) =>
      shape.examples.map((one) => ({ [field]: one })),
    ),
    volumes: Object.entries(VOLUME).flatMap(([field, shape]) =>
      shape.examples.map((one) => ({ [field]: one })),
    ),
    secrets: [{ file: './dir/file' }],
    configs: [{ content: 'some text' }, { file: './leads' }],
  };
  const uses = {
    networks: (name: string) => ({ networks: [name] }),
    volumes: (name: string) => ({ volumes: [{ type: 'volume', source: name, target: '/data' }] }),
    secrets: (name: string) => ({ secrets: [name] }),
    configs: (name: string) => ({ configs: [{ source: name }] }),
  };
  return (Object.keys(examples) as (keyof typeof examples)[]).flatMap((section) =>
    examples[section].flatMap((example) => {
      const stackWith = (name: string, value: unknown) => ({
        ...base(),
        services: { web: { image: 'box', ...uses[section](name) } },
        [section]: { [name]: value },
      });
      return [
        { path: `${section}.{name}`, example: 'data', with: (text: string) => stackWith(text, example) },
        ...placesIn(example, `${section}.some`).map((place) => ({
          ...place,
          with: (text: string) => stackWith('some', place.with(text)),
        })),
      ];
    }),
  );
}

function fileSites(): Site[] {
  const service = { image: 'box' };
  const include = { path: 'other.yml', project_directory: '.', env_file: 'app.env' };
  return [
    { path: 'services.{name}', example: 'web', with: (text) => ({ services: { [text]: service } }) },
    {
      path: '{section}',
      example: 'x-more',
      with: (text) => ({ ...base(), [text]: { a: { image: 'box' } } }),
    },
    { path: 'name', example: 'shop', with: (text) => ({ ...base(), name: text }) },
    { path: 'version', example: '3.8', with: (text) => ({ ...base(), version: text }) },
    ...placesIn([include], 'include').map((place) => ({
      ...place,
      with: (text: string) => ({ services: { web: service }, include: place.with(text) }),
    })),
  ];
}

export function hostileSites(): Site[] {
  return [...serviceSites(), ...sectionSites(), ...fileSites()];
}

/** Texts with a meaning for a shell, a list of lines, a YAML reader, an engine, a kernel or a path. */
export const HOSTILE_TEXTS: readonly string[] = [
  ...['\n', '\t', '\0', '\r', '\u001b[31m', '\u0085', '\u2028', '\u202e', '\ufeff', '\ud800'],
  ...[
    '..',
    '../..',
    '../../../../etc/passwd',
    '/',
    '//',
    '/etc/shadow',
    '/..',
    './..',
    '~/.ssh',
    '/proc/1/root',
  ],
  ...[
    '/var/run/docker.sock',
    '/.sandboxer/agent',
    '/x/../.sandboxer/agent',
    '//.sandboxer',
    '/dev/sda',
    'leads/..',
  ],
  ...[
    "'",
    '"',
    '\\',
    '`id`',
    '$(id)',
    '$HOME',
    ...['HOME', '$HOME', 'X:-/etc'].map((name) => `\${${name}}`),
    '%2e%2e%2f',
    '*',
    '?',
    '#',
    ' ',
  ],
  ...[
    '-rf',
    '--privileged',
    '--host=tcp://192.0.2.1',
    '-v/:/host',
    '@/etc/passwd',
    '=',
    ':',
    ',',
    ';id',
    '|id',
    '&',
  ],
  ...[
    'a\ncopy\t../other\ttree/out',
    '/etc\nvolume\tdb\ta\t1\tstolen\t/srv',
    'x\n    privileged: true',
    '"}, "privileged": true, "x": {"',
  ],
  ...[
    'host',
    'bridge',
    'container:other',
    'service:other',
    'unconfined',
    'seccomp=unconfined',
    'ALL',
    'SYS_ADMIN',
    'runc',
  ],
  ...[
    'bind',
    'rbind',
    'remount',
    'size=1m,bind',
    'bind,size=1m',
    'device=/',
    'lowerdir=/',
    'none',
    'nfs',
    'overlay',
    'tmpfs',
  ],
  ...[
    'sandboxer-sbx0-web',
    'docker.io/library/sandboxer-sbx0-web',
    'index.docker.io/sandboxer-sbx0:1',
    'localhost/sandboxer-snapshot-1-a',
  ],
  ...[
    'sandboxer-gateway',
    'ab',
    'sha256:ab',
    `${'ab'.repeat(32)}`,
    'io.sandboxer.owner',
    'com.docker.compose.project',
    'traefik.enable',
  ],
  ...[
    'run.oci.seccomp_bpf_data',
    'PATH',
    'LD_PRELOAD',
    'DOCKER_HOST',
    'SBX_0',
    '__proto__',
    'constructor',
    'toString',
    '<<',
  ],
  ...[
    'privileged',
    'external',
    'device',
    'o',
    'inside',
    'outside',
    '-1',
    '1e9',
    '0x10',
    '99999999999999999999',
    'NaN',
    'true',
    'null',
  ],
  ...['x'.repeat(4096), '../'.repeat(1365), '\n'.repeat(4096), '$'.repeat(4096)],
];
