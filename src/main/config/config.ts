import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { z } from 'zod';
import { SandboxerError } from '../../contract/errors/errors.ts';
import { HostSpec } from '../../contract/extensions/host.ts';
import { DurationSeconds } from '../../contract/values/duration.ts';
import { DEFAULT_SETTINGS } from '../../control/ports/settings.ts';
import { builtinConfig } from '../../extensions/builtins.ts';
import { PackagesConfig } from '../../extensions/load-packages.ts';
import { isNetwork } from '../../http/keys/client-address.ts';
import { isFaulty, readYaml } from '../../yaml/read-yaml.ts';
import { FILE } from '../../yaml/yaml-limits.ts';
import { configProblem } from './config-problem.ts';

const LogLevel = z.enum(['debug', 'info', 'warn', 'error', 'silent']);

const Duration = DurationSeconds.transform((seconds) => seconds * 1000);

const WebhookConfig = z.strictObject({
  allow_private: z
    .boolean()
    .default(false)
    .describe('Whether webhooks may lead into private networks and to this machine.'),
  allow_http: z.boolean().default(false).describe('Whether webhooks may go unencrypted beyond this machine.'),
  per_workspace: z.number().int().positive().max(1000).default(20),
  timeout: Duration.default(10_000).describe('For an answer of the receiver.'),
  max_tries: z.number().int().min(1).max(100).default(20).describe('Before an event is set aside as dead.'),
  longest_retry: Duration.default(3_600_000).describe('The longest pause between two tries.'),
  disable_after: z.number().int().positive().default(10).describe('Dead events in a row.'),
});

const UploadConfig = z.strictObject({
  max_mb: z.number().int().positive().max(1_048_576).default(2048).describe('Of one upload.'),
  max_entries: z.number().int().positive().max(10_000_000).default(500_000).describe('Of one upload.'),
  workspace_mb: z.number().int().positive().default(16_384).describe('Of all uploads of a workspace.'),
  keep: Duration.default(7_200_000).describe('How long an upload waits that no sandbox was made from.'),
});

const GitConfig = z.strictObject({
  allow: z
    .array(
      z
        .string()
        .max(300)
        .regex(
          /^(?:\*\.)?[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::\d{1,5})?$/i,
          'Write a host as "git.example.org", "git.example.org:8443" or "*.example.org".',
        ),
    )
    .max(256)
    .default([])
    .describe('Hosts that callers with a key may name. The administrator on the unix socket may name any.'),
  allow_private: z
    .boolean()
    .default(false)
    .describe('Whether repositories may lie in private networks and on this machine.'),
  known_hosts: z
    .string()
    .nullable()
    .default(null)
    .describe('Keys of ssh hosts, as ssh keeps them. Without it, ssh addresses are refused.'),
  ca_file: z.string().nullable().default(null).describe('Certificate authorities instead of the system’s.'),
  timeout: Duration.default(120_000),
  max_mb: z.number().int().positive().max(1_048_576).default(2048).describe('Largest fetch, in MiB.'),
});

const HostsConfig = z.strictObject({
  registered: z.array(HostSpec).max(1000).default([]).describe('As `sandboxer hosts add` takes them.'),
  probe: Duration.default(30_000).describe('How often each host is looked at.'),
  canary: z
    .strictObject({
      every: Duration.nullable()
        .default(900_000)
        .describe('How often a canary tries each host; null: never.'),
    })
    .default({ every: 900_000 }),
  local: HostSpec.pick({ labels: true, capacity: true, cost_micro_usd_per_hour: true })
    .default({
      labels: {},
      capacity: { sandboxes: null, cpu: null, memory_mb: null },
      cost_micro_usd_per_hour: null,
    })
    .describe('The machine of the server, which is the host `local`.'),
  keep_figures: Duration.default(30 * 86_400_000).describe('How long figures of hosts are kept.'),
  ops_bridge: z
    .strictObject({ directory: z.string().describe('Where ops-bridge keeps `<tunnel>.conf`.') })
    .nullable()
    .default(null),
  ops_warden: z
    .strictObject({
      command: z
        .array(z.string())
        .min(1)
        .describe('Gets a public key on its input and the host as last argument; prints a certificate.'),
      renew_before: Duration.default(60_000),
    })
    .nullable()
    .default(null),
});

/** Receiver of events that the operator names. */
const HubConfig = z
  .strictObject({
    url: z
      .url({ protocol: /^https?$/ })
      .max(2048)
      .describe('Where events are posted.'),
    token_file: z.string().nullable().default(null).describe('File with the bearer token of the hub.'),
    timeout: Duration.default(10_000),
  })
  .nullable()
  .default(null);

const HubUrl = z
  .url({ protocol: /^https?$/ })
  .max(2048)
  .optional();

/** Federation of capability registries: its hub, or a directory that it reads. */
const ReuseSurfaceConfig = z
  .strictObject({
    url: HubUrl.describe('The hub, without "/v1".'),
    index_url: HubUrl.describe(
      'Where the hub fetches registry/indexes/capabilities.yaml of this project from. Required with `url`.',
    ),
    token_file: z.string().nullable().default(null).describe('File with the bearer token of the hub.'),
    timeout: Duration.default(10_000).describe('For an answer of the hub.'),
    directory: z
      .string()
      .startsWith('/', 'Write an absolute path.')
      .optional()
      .describe('A directory that reuse-surface reads, instead of `url`.'),
  })
  .refine(({ url, directory }) => (url === undefined) !== (directory === undefined), {
    message: 'Name "url" or "directory", one of them.',
  })
  .refine(({ url, index_url }) => url === undefined || index_url !== undefined, {
    message: 'The hub fetches the index from here: it is required with "url".',
    path: ['index_url'],
  })
  .nullable()
  .default(null);

/** Settings of the built-in extensions, and packages of others. */
const ExtensionsConfig = z.strictObject({ ...builtinConfig(), packages: PackagesConfig });

/** Schema of the configuration file. Every field has a default: an empty file, or none, is a working server. */
export const Config = z.strictObject({
  state_dir: z
    .string()
    .optional()
    .describe('Database, socket and images. Default: $XDG_DATA_HOME/sandboxer.'),
  listen: z
    .strictObject({
      socket: z
        .string()
        .optional()
        .describe('Unix socket for callers on this machine. Default: <state_dir>/sandboxer.sock.'),
      tcp: z
        .string()
        .regex(
          /^(?:\[[0-9a-f:]+\]|[\w.-]+):\d{1,5}$/i,
          'Write an address and port, such as "127.0.0.1:8400".',
        )
        .nullable()
        .default(null)
        .describe('Address and port for callers with a key.'),
      trusted_proxies: z
        .array(
          z
            .string()
            .max(64)
            .refine(isNetwork, 'Write an address or a network, such as "10.0.0.7" or "fd00::/8".'),
        )
        .max(64)
        .default([])
        .describe(
          'Addresses or networks of proxies. What they say in X-Forwarded-For is the address of a client; from others it is ignored.',
        ),
    })
    .default({ tcp: null, trusted_proxies: [] }),
  log: z.strictObject({ level: LogLevel.default('info') }).default({ level: 'info' }),
  profiles: z
    .strictObject({ folders: z.array(z.string()).default([]).describe('Further catalogue folders.') })
    .default({ folders: [] }),
  secrets: z
    .strictObject({
      directory: z.string().nullable().default(null).describe('Where the `file` provider finds secrets.'),
    })
    .default({ directory: null }),
  limits: z
    .strictObject({
      living_sandboxes: z.number().int().positive().nullable().default(null).describe('Per workspace.'),
      snapshots: z.number().int().positive().nullable().default(null).describe('Per workspace.'),
      snapshot_mb: z
        .number()
        .int()
        .positive()
        .nullable()
        .default(null)
        .describe('All snapshots of a workspace together.'),
      images: z.number().int().min(0).default(100).describe('Per workspace.'),
      image_mb: z.number().int().min(0).default(65_536).describe('All images of a workspace together.'),
      volumes: z.number().int().min(0).default(100).describe('Per workspace.'),
    })
    .default({
      living_sandboxes: null,
      snapshots: null,
      snapshot_mb: null,
      images: 100,
      image_mb: 65_536,
      volumes: 100,
    }),
  daemon: z
    .strictObject({
      stop_after: Duration.nullable()
        .default(1_800_000)
        .describe('Without a caller, a sandbox or an event to deliver for so long. `null`: never.'),
    })
    .default({ stop_after: 1_800_000 })
    .describe('The server that the command starts by itself. `serve` never stops by itself.'),
  uploads: UploadConfig.default(UploadConfig.parse({})).describe('File trees that wait for their sandbox.'),
  git: GitConfig.default(GitConfig.parse({})).describe('Repositories that the server fetches for a create.'),
  preview: z
    .strictObject({
      listen: z
        .string()
        .regex(/^(?:\[[0-9a-f:]+\]|[\w.-]+):\d{1,5}$/i)
        .nullable()
        .default(null)
        .describe(
          'Address and port of the preview server. Default: a free port of 127.0.0.1, when first needed.',
        ),
      domain: z
        .string()
        .max(200)
        .default('localhost')
        .describe(
          'Every preview is a host of its own below this domain. It must not be the domain of the API.',
        ),
      url: z
        .string()
        .includes('*')
        .nullable()
        .default(null)
        .describe(
          'How a preview is reached from outside, with `*` for its host label: https://*.preview.example.org',
        ),
    })
    .default({ listen: null, domain: 'localhost', url: null }),
  routing: z
    .strictObject({
      hedge_share: z
        .number()
        .min(0)
        .max(1)
        .default(DEFAULT_SETTINGS.hedgeShare)
        .describe('At most this share of the attempts may be second ones, next to a slow first. 0: none.'),
    })
    .default({ hedge_share: DEFAULT_SETTINGS.hedgeShare }),
  timing: z
    .strictObject({
      lease: Duration.optional().describe('How long a dead worker holds its sandboxes.'),
      wait: Duration.optional().describe('How long a synchronous request waits.'),
      first_retry: Duration.optional(),
      longest_retry: Duration.optional(),
      reconcile: Duration.optional().describe('How often a backend is compared with the database.'),
      meter_tick: Duration.optional(),
      dead_man_grace: Duration.optional(),
      fund_ahead: Duration.optional().describe('How far ahead a metered sandbox is paid for. Default: 10m.'),
    })
    .default({}),
  retention: z
    .strictObject({
      sandboxes: Duration.optional().describe('Destroyed sandboxes.'),
      snapshots: Duration.optional().describe(
        'Snapshots without a name, unless they were asked for with a time of their own. Default: until deleted.',
      ),
      snapshot_count: z
        .number()
        .int()
        .positive()
        .nullable()
        .default(null)
        .describe('How many snapshots without a name a workspace keeps: the newest.'),
      events: Duration.optional(),
      idempotency_keys: Duration.optional(),
      audit: Duration.optional().describe('Records of the audit log. Default: a year.'),
    })
    .default({ snapshot_count: null }),
  rate_limit: z
    .strictObject({
      per_second: z.number().positive().max(1_000_000).describe('Requests of one key, on average.'),
      burst: z.number().int().positive().max(1_000_000).describe('Requests of one key at once.'),
    })
    .nullable()
    .default(null)
    .describe(
      'Of each key, with its successors and the keys it made. Callers on the unix socket without one are not limited.',
    ),
  hosts: HostsConfig.default(HostsConfig.parse({})),
  webhooks: WebhookConfig.default(WebhookConfig.parse({})),
  state_hub: HubConfig.describe('The State Hub that receives every transition.'),
  fin_hub: HubConfig.describe('The fin-hub that receives every bill, grant and budget.'),
  reuse_surface: ReuseSurfaceConfig.describe(
    'Where `sandboxer registry publish` publishes the capability entry: a hub, or a directory.',
  ),
  master_key: z
    .strictObject({
      file: z.string().optional().describe('Default: <state_dir>/master.key, made at the first start.'),
      command: z.array(z.string()).min(1).optional().describe('A program and its arguments that prints it.'),
      previous_file: z
        .string()
        .optional()
        .describe(
          'The one before: what it sealed still opens, until `sandboxer providers rotate`. SANDBOXER_MASTER_KEY_PREVIOUS comes before it.',
        ),
    })
    .default({})
    .describe('Key that seals stored secrets. SANDBOXER_MASTER_KEY comes before both.'),
  extensions: ExtensionsConfig.default(ExtensionsConfig.parse({})),
});
export type Config = z.infer<typeof Config>;

export interface ResolvedConfig extends Config {
  readonly stateDir: string;
  readonly socketPath: string;
  /** Directory where packages of `extensions.packages` are looked for first. */
  readonly configDir: string;
}

function defaultStateDir(env: NodeJS.ProcessEnv): string {
  return join(env.XDG_DATA_HOME || join(homedir(), '.local', 'share'), 'sandboxer');
}

function readDocument(path: string | undefined): unknown {
  if (path === undefined) return {};
  const unreadable = (reason: string, cause?: unknown) =>
    new SandboxerError('SBX_CONFIG_INVALID', `The configuration file ${path} cannot be read: ${reason}`, {
      cause,
      remedy: 'Correct the file, or point SANDBOXER_CONFIG elsewhere.',
    });
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw unreadable((error as Error).message, error);
  }
  const read = readYaml(text, { limits: FILE });
  if (!isFaulty(read)) return read.value ?? {};
  const [fault] = read;
  throw unreadable(`${fault?.line == null ? '' : `line ${fault.line}: `}${fault?.message}. ${fault?.remedy}`);
}

function logLevelIn({ SANDBOXER_LOG_LEVEL: text }: NodeJS.ProcessEnv): z.infer<typeof LogLevel> | null {
  if (!text) return null;
  const parsed = LogLevel.safeParse(text);
  if (parsed.success) return parsed.data;
  throw new SandboxerError('SBX_CONFIG_INVALID', `SANDBOXER_LOG_LEVEL: there is no log level "${text}".`, {
    remedy: `Choose one of: ${LogLevel.options.join(', ')}.`,
  });
}

/** Loads the file first, then the environment on top of it. */
export function loadConfig(
  env: NodeJS.ProcessEnv,
  overrides: Partial<z.input<typeof Config>> = {},
): ResolvedConfig {
  const file = env.SANDBOXER_CONFIG || undefined;
  const parsed = Config.safeParse({ ...(readDocument(file) as object), ...overrides });
  if (!parsed.success) throw configProblem(Config, parsed.error.issues, file);
  const config = parsed.data;
  const stateDir = env.SANDBOXER_STATE_DIR || config.state_dir || defaultStateDir(env);
  return {
    ...config,
    stateDir,
    configDir: file === undefined ? process.cwd() : dirname(resolve(file)),
    socketPath: env.SANDBOXER_SOCKET || config.listen.socket || join(stateDir, 'sandboxer.sock'),
    listen: { ...config.listen, tcp: env.SANDBOXER_LISTEN || config.listen.tcp },
    log: { level: logLevelIn(env) ?? config.log.level },
  };
}
