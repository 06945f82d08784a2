import { z } from 'zod';
import type { CapabilityVector } from '../../contract/extensions/capability.ts';
import type { SshHostOptions } from '../shared/ssh/ssh-host.ts';
import type { AgentBinaries } from '../shared/ssh/upload-agent.ts';
import type { EngineWish } from './remote/engine-record.ts';
import { ENGINE_WISHES } from './remote/engine-record.ts';

export const ComposeConfig = z.strictObject({
  enabled: z.boolean().default(true).describe('Whether stacks are placed on registered hosts.'),
  directory: z
    .string()
    .max(1024)
    .optional()
    .describe(
      'Where stacks live on a host, absolute or below the login directory. Default: .sandboxer/compose.',
    ),
  address_pool: z
    .string()
    .regex(/^\d+\.\d+\.\d+\.\d+\/\d+$/)
    .optional()
    .describe(
      'The addresses that networks of stacks are cut from; free on every host. Default: 10.213.0.0/16.',
    ),
  engine: z
    .enum(ENGINE_WISHES)
    .default('auto')
    .describe(
      'Which engine of a host new stacks run on. auto: a rootless engine of the ssh user that was proven by a started container and enforces the limits of the stack, otherwise the one that docker reaches; rootless: no other than a proven rootless one; rootful: what docker reaches.',
    ),
});

export interface ComposeOptions {
  /** Directory on each host, absolute or below the login directory. Default: `.sandboxer/compose`. */
  readonly directory?: string;
  /** Address range for the networks of stacks; it must be free on every host. Default: 10.213.0.0/16. */
  readonly addressPool?: string;
  /** Which engine of a host new stacks run on. Default: `auto`. */
  readonly engine?: EngineWish;
  readonly ssh?: SshHostOptions;
  /**
   * Agent for each `uname -m` of a host. Default: those of this installation: a checkout has this machine's, a package those of
   * x86_64 and aarch64.
   */
  readonly agents?: AgentBinaries;
}

export function optionsOf(config: z.output<typeof ComposeConfig>): ComposeOptions {
  const { directory, address_pool, engine } = config;
  return {
    engine,
    ...(directory === undefined ? {} : { directory }),
    ...(address_pool === undefined ? {} : { addressPool: address_pool }),
  };
}

export const DEFAULT_DIRECTORY = '.sandboxer/compose';
export const DEFAULT_POOL = '10.213.0.0/16';

export const CAPABILITIES: CapabilityVector = {
  isolation: ['container'],
  egress: 'none',
  deny_all: true,
  open_network: true,
  credentials: ['file', 'env'],
  dead_man: 'none',
  snapshot: 'filesystem',
  snapshot_destructive: false,
  fork: true,
  pause: 'frozen',
  persistence: ['ephemeral', 'persistent'],
  exec: true,
  pty: true,
  background: true,
  files: true,
  watch: true,
  ports: true,
  ssh: true,
  services: true,
  resources: ['cpu', 'memory_mb', 'pids', 'open_files'],
  images: ['host'],
  regions: [],
  gpu: [],
  max_ttl_seconds: null,
  pricing: 'infrastructure',
  latency_class: 'slow',
  hosting: 'self-hosted',
  host_root: true,
  trusted_code_only: true,
  elevated: true,
  demo: false,
} as CapabilityVector;

/** Returns the capabilities. Where stacks run on rootless engines alone, root inside is the ssh user of the host. */
export function capabilitiesFor(engine: EngineWish): CapabilityVector {
  if (engine !== 'rootless') return CAPABILITIES;
  return { ...CAPABILITIES, host_root: false, trusted_code_only: false };
}
