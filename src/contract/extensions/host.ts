import { z } from 'zod';
import { MicroUsd } from '../money/money.ts';
import { boundedList } from '../values/bounded.ts';
import { ExtensionId, HostId } from '../values/ids.ts';
import { Labels } from '../values/json.ts';
import { SandboxState } from '../values/state.ts';
import { IsolationLevel } from './capability.ts';

const FilePath = z.string().min(1).max(1024).regex(/^\//, 'Write an absolute path of the server.');
const HostKey = z
  .string()
  .max(4096)
  .regex(
    /^(?:@cert-authority )?[a-z0-9@.-]+ [A-Za-z0-9+/]+={0,2}(?: [^\r\n]*)?$/,
    'Write a public key as "ssh-ed25519 AAAA…": `ssh-keyscan` shows it, the console of the host proves it.',
  );

const SshHop = z.strictObject({
  destination: z
    .string()
    .regex(/^[A-Za-z0-9_:.][A-Za-z0-9_:.-]{0,252}$/, 'Write a host name or an address.')
    .describe('Name or address, or the alias of a tunnel.'),
  port: z.number().int().min(1).max(65_535).optional(),
  user: z
    .string()
    .regex(/^[A-Za-z0-9_.][A-Za-z0-9_.@-]{0,63}$/)
    .optional(),
  host_keys: boundedList(z.array(HostKey).min(1).max(16), 16).describe(
    'The only keys that the host may show.',
  ),
  identity_file: FilePath.optional().describe('Private key, on the server. Default: its ssh agent.'),
  certificate_file: FilePath.optional().describe('Certificate for the key, on the server.'),
});

/** The access to a host. Files are named, never sent. */
export const HostSsh = SshHop.extend({
  jump: boundedList(z.array(SshHop).max(4), 4).default([]).describe('Hosts to go through, nearest first.'),
  tunnel: z
    .string()
    .regex(/^[a-z0-9][a-z0-9.-]{0,62}$/)
    .optional()
    .describe('Name of an ops-bridge tunnel: its OpenSSH configuration is used.'),
  identity: z
    .enum(['ops-warden'])
    .optional()
    .describe('Where the certificate comes from, if not from a file.'),
}).meta({ id: 'HostSsh' });
export type HostSsh = z.infer<typeof HostSsh>;

/** The registered description of a host: from the configuration file, or over the API. */
export const HostSpec = z
  .strictObject({
    id: HostId.refine((id) => id !== 'local', 'The machine of the server is called "local" already.'),
    class: z
      .enum(['sandbox', 'production'])
      .default('sandbox')
      .describe('`production` is never a target: it is registered only to be refused.'),
    ssh: HostSsh,
    extensions: boundedList(z.array(ExtensionId).max(32), 32)
      .default([])
      .describe('Which it serves; none means every one.'),
    labels: Labels.default({}),
    isolation: boundedList(z.array(IsolationLevel).max(8), 8)
      .default([])
      .describe('Levels to be had there; none means any.'),
    capacity: z
      .strictObject({
        sandboxes: z.number().int().positive().max(100_000).nullable().default(null),
        cpu: z.number().positive().max(100_000).nullable().default(null),
        memory_mb: z.number().int().positive().nullable().default(null),
      })
      .default({ sandboxes: null, cpu: null, memory_mb: null }),
    cost_micro_usd_per_hour: MicroUsd.nullable().default(null),
  })
  .meta({ id: 'HostSpec' });
export type HostSpec = z.infer<typeof HostSpec>;
export type HostSpecInput = z.input<typeof HostSpec>;

export const HostHealth = z
  .strictObject({
    status: z.enum(['unknown', 'healthy', 'unhealthy']),
    detail: z.string(),
    since: z.string().nullable(),
    checked_at: z.string().nullable(),
    latency_ms: z.number().nullable().describe('Of one round trip over a standing connection.'),
    failures: z.number().int().describe('In a row.'),
    canaries: z
      .array(
        z.strictObject({
          extension: z.string(),
          status: z.enum(['unknown', 'healthy', 'unhealthy']).describe('With hysteresis, as of probes.'),
          detail: z.string(),
          since: z.string().nullable(),
          checked_at: z.string(),
          failures: z.number().int().describe('In a row.'),
          ready_ms: z.number().nullable(),
          exec_ms: z.number().nullable(),
          destroyed_ms: z.number().nullable(),
        }),
      )
      .describe('The last trial of each backend that it serves.'),
  })
  .meta({ id: 'HostHealth' });

export const Host = HostSpec.extend({
  id: HostId,
  ssh: HostSsh.nullable().describe('`null` for the machine of the server.'),
  source: z.enum(['file', 'api', 'server']),
  state: z.enum(['active', 'draining']),
  health: HostHealth,
  load: z.strictObject({ sandboxes: z.number().int(), cpu: z.number(), memory_mb: z.number().int() }),
  created_at: z.string(),
}).meta({ id: 'Host', description: 'A placement target.' });
export type Host = z.infer<typeof Host>;

export const HostList = z.strictObject({ items: z.array(Host) }).meta({ id: 'HostList' });

const Amount = z.number().nullable();
export const HostTelemetry = z
  .strictObject({
    host: z.string(),
    kernel: z.string().nullable(),
    machine: z.string().nullable(),
    user: z.string().nullable(),
    cpus: Amount,
    load: z.array(z.number()).describe('Over 1, 5 and 15 minutes.'),
    memory_total_mb: Amount,
    memory_available_mb: Amount,
    disk_total_mb: Amount,
    disk_free_mb: Amount,
    uptime_seconds: Amount,
    latency_ms: Amount.describe('Of asking for all this.'),
    engines: z
      .record(z.string(), z.string())
      .describe('Versions of docker, of a rootless docker of the ssh user, and of compose.'),
    isolation: z
      .array(z.string())
      .describe(
        'Features of the machine: runtimes, landlock, kvm, user namespaces; `rootless-engine` once a container of it was started.',
      ),
    containers: z.strictObject({
      ours: z.number().int(),
      other_owner: z.number().int().describe('Of another installation of sand-boxer.'),
      not_ours: z.number().int(),
    }),
    running: z
      .array(
        z.strictObject({
          name: z.string(),
          image: z.string(),
          state: z.string(),
          whose: z.enum(['ours', 'other_owner', 'not_ours']),
        }),
      )
      .describe('The containers there, at most 100.'),
    sandboxes: z.number().int().describe('Number of our sandboxes on the host.'),
    ours: z
      .array(
        z.strictObject({
          sandbox_id: z.string(),
          workspace: z.string(),
          extension: z.string(),
          state: SandboxState,
          since: z.string(),
        }),
      )
      .describe('The newest of them, at most 100.'),
    canaries: HostHealth.shape.canaries,
    seen_at: z.string(),
  })
  .meta({ id: 'HostTelemetry' });
export type HostTelemetry = z.infer<typeof HostTelemetry>;

export const CanaryReport = z
  .strictObject({
    host: z.string(),
    items: z.array(
      z.strictObject({
        extension: z.string(),
        at: z.string(),
        ok: z.boolean(),
        ready_ms: z.number().nullable().describe('From nothing to a sandbox that answers.'),
        exec_ms: z.number().nullable().describe('Of the first program in it.'),
        destroyed_ms: z.number().nullable().describe('Until nothing of it was left.'),
        problem: z.string().nullable(),
      }),
    ),
  })
  .meta({ id: 'CanaryReport' });
export type CanaryReport = z.infer<typeof CanaryReport>;

export const HostSampleList = z
  .strictObject({
    items: z.array(
      z.strictObject({
        at: z.string(),
        data: z.record(z.string(), z.union([z.number(), z.string(), z.boolean(), z.null()])),
      }),
    ),
  })
  .meta({ id: 'HostSampleList' });
