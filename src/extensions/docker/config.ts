import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import type { CapabilityVector, ResourceName } from '../../contract/extensions/capability.ts';
import type { ExtensionServices } from '../../core/ports/extension.ts';
import type { DockerOptions } from './containers/options.ts';
import { canLimitDisk } from './containers/options.ts';
import type { EngineFacts } from './engine/engine-facts.ts';
import type { Levels } from './inspect/levels.ts';

const SecretPlace = z.strictObject({
  provider: z.enum(['env', 'file']).default('env').describe('Where the secret is.'),
  key: z.string().max(200).describe('Its name there.'),
});

export const DockerConfig = z.strictObject({
  enabled: z
    .boolean()
    .optional()
    .describe('Default: true where an engine is named or its socket is found on this machine.'),
  url: z
    .string()
    .max(2048)
    .optional()
    .describe(
      'The engine: unix:///path/of.sock, tcp://host:2376 with `tls`, or ssh://user@host, with the path of its socket behind it where it is not the usual one. Default: DOCKER_HOST, or the socket that is found.',
    ),
  tls: z
    .strictObject({
      ca_file: z.string().optional().describe('Certificate authority of the engine’s certificate.'),
      cert_file: z.string().describe('Our certificate.'),
      key_file: z.string().describe('The key of our certificate.'),
    })
    .optional()
    .describe('For an engine over TCP.'),
  ssh: z
    .strictObject({
      host_keys: z
        .array(z.string().max(8192))
        .max(16)
        .default([])
        .describe(
          'Pinned keys, each `ssh-ed25519 AAAA…`. Default: those that the server’s user has accepted.',
        ),
      identity_file: z.string().optional().describe('Private key. Default: the server’s ssh agent.'),
      certificate_file: z.string().optional().describe('Certificate of that key.'),
      config_file: z.string().optional().describe('OpenSSH configuration. Default: ~/.ssh/config.'),
    })
    .optional()
    .describe('For an engine over ssh.'),
  directory: z
    .string()
    .optional()
    .describe('Where the sandboxes of an engine on this machine call. Default: <state_dir>/docker.'),
  default_image: z
    .string()
    .max(512)
    .nullable()
    .default(null)
    .describe(
      'Image that `image: host` stands for on this engine. Without it only profiles that name an image run here.',
    ),
  images: z
    .strictObject({
      allow: z
        .array(z.string().min(1).max(512))
        .max(256)
        .default(['*'])
        .describe(
          'Images that may be named, as patterns with `*`. One without a registry’s host matches only names without one.',
        ),
      pull: z.enum(['never', 'missing', 'always']).default('missing').describe('When an image is fetched.'),
      require_digest: z
        .boolean()
        .default(false)
        .describe('Whether an image must be named by its content: name@sha256:….'),
    })
    .default({ allow: ['*'], pull: 'missing', require_digest: false }),
  registries: z
    .record(
      z.string().max(253),
      z.strictObject({
        username: z.string().max(256).describe('Who pulls.'),
        password: SecretPlace.describe('Fetched for each pull, and kept nowhere.'),
      }),
    )
    .default({})
    .describe('Logins by the host of the registry; `default` is the engine’s own default registry.'),
  network: z
    .string()
    .max(128)
    .nullable()
    .default(null)
    .describe(
      'The engine’s network for profiles with an open one, such as `bridge`. Without it there is none.',
    ),
  channel: z
    .enum(['auto', 'call', 'relay', 'exec'])
    .default('auto')
    .describe(
      'How the agent inside is reached: over a mounted socket, by a relay that the engine starts, or `exec`: not at all, the engine starts each program.',
    ),
  disk_quota: z
    .boolean()
    .default(false)
    .describe('Whether the engine’s storage driver keeps disk_mb: overlay2 on xfs with pquota does.'),
  warm: z.number().int().min(0).max(256).default(0).describe('Most containers kept running ahead of need.'),
  regions: z
    .array(z.string().min(1).max(64))
    .max(16)
    .default([])
    .describe('Where the engine stands, for requests that need a region: `eu`.'),
});

type Settings = z.infer<typeof DockerConfig>;

const SOCKETS = ['/var/run/docker.sock', '/run/podman/podman.sock'];

/** Returns the engine's URL from the configuration, the environment, or the usual places. */
function urlOf({ url }: Settings, env: ExtensionServices['env']): string | null {
  const named = url ?? env.DOCKER_HOST;
  if (named) return named;
  const found = SOCKETS.find((path) => existsSync(path));
  return found === undefined ? null : `unix://${found}`;
}

/** Returns the options of the configuration; `null` where it is turned off, or no engine is named or found. */
export function optionsOf(
  config: Settings,
  { stateDir, env, secret }: ExtensionServices,
): DockerOptions | null {
  const url = urlOf(config, env);
  if (!(config.enabled ?? url !== null) || env.SANDBOXER_DOCKER === '0') return null;
  const {
    images,
    registries,
    tls,
    ssh,
    directory,
    default_image,
    network,
    channel,
    disk_quota,
    warm,
    regions,
  } = config;
  // Values of logins are fetched when they are needed.
  const logins = Object.fromEntries(
    Object.entries(registries).map(([host, { username, password }]) => [
      host === 'default' ? '' : host,
      { username, password: (signal: AbortSignal) => secret(password, signal) },
    ]),
  );
  return {
    url: url ?? `unix://${SOCKETS[0]}`,
    tls: tls ?? null,
    ssh: {
      hostKeys: ssh?.host_keys ?? [],
      identityFile: ssh?.identity_file ?? null,
      certificateFile: ssh?.certificate_file ?? null,
      configFile: ssh?.config_file ?? null,
    },
    directory: resolve(directory ?? join(stateDir, 'docker')),
    defaultImage: default_image,
    images: { allow: images.allow, pull: images.pull, requireDigest: images.require_digest, logins },
    network,
    channel,
    diskQuota: disk_quota,
    warm,
    regions,
  };
}

/**
 * Returns the capabilities that this engine can enforce. An engine that does not answer gets those of every supported one. On a
 * `bare` one the agent runs nowhere.
 */
export function capabilitiesOf(
  facts: EngineFacts | null,
  options: Pick<DockerOptions, 'network' | 'defaultImage' | 'diskQuota' | 'regions'>,
  levels: Pick<Levels, 'offered'>,
  bare = false,
): CapabilityVector {
  const limits: readonly (readonly [ResourceName, boolean])[] = [
    ['cpu', facts?.cpu ?? true],
    ['memory_mb', facts?.memory ?? true],
    ['pids', facts?.pids ?? true],
    ['disk_mb', facts !== null && canLimitDisk(facts, options)],
    ['open_files', true],
  ];
  return {
    isolation: ['container', ...levels.offered.keys()],
    egress: 'none',
    deny_all: true,
    open_network: options.network !== null,
    credentials: ['file', 'env'],
    dead_man: 'none',
    snapshot: 'filesystem',
    snapshot_destructive: false,
    fork: true,
    pause: 'frozen',
    persistence: ['ephemeral', 'persistent'],
    exec: true,
    pty: true,
    background: !bare,
    files: true,
    watch: !bare,
    ports: !bare,
    ssh: false,
    resources: limits.filter(([, kept]) => kept).map(([name]) => name),
    images: options.defaultImage === null ? ['reference'] : ['host', 'reference'],
    regions: [...(options.regions ?? [])],
    gpu: [],
    max_ttl_seconds: null,
    pricing: 'free',
    latency_class: 'fast',
    hosting: 'self-hosted',
    no_new_privs: true,
    host_root: false,
    elevated: false,
    demo: false,
  };
}
