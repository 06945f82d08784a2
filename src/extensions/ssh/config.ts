import { z } from 'zod';
import type { CapabilityVector } from '../../contract/extensions/capability.ts';
import type { SshHostOptions } from '../shared/ssh/ssh-host.ts';
import type { AgentBinaries } from '../shared/ssh/upload-agent.ts';

export const SshConfig = z.strictObject({ enabled: z.boolean().default(false) });

export interface SshOptions {
  readonly agents: AgentBinaries;
  /** Directory below the home of the user on the host, unless it is absolute. */
  readonly directory?: string;
  readonly ssh?: SshHostOptions;
}

export const DIRECTORY = '.sandboxer';

/**
 * Capabilities of a directory and a user. `none` restricts nothing; `policy` is Landlock and a filter of system calls, on a user
 * that is not root.
 */
export const CAPABILITIES: CapabilityVector = {
  isolation: ['none', 'policy'],
  egress: 'none',
  deny_all: false,
  open_network: true,
  credentials: ['file', 'env'],
  dead_man: 'none',
  snapshot: 'none',
  snapshot_destructive: false,
  fork: false,
  pause: 'none',
  persistence: ['ephemeral'],
  exec: true,
  pty: true,
  background: true,
  files: true,
  watch: true,
  ports: true,
  ssh: true,
  resources: ['open_files'],
  images: ['host', 'none'],
  regions: [],
  gpu: [],
  max_ttl_seconds: null,
  pricing: 'infrastructure',
  latency_class: 'fast',
  hosting: 'self-hosted',
  host_root: true,
  elevated: false,
  demo: false,
};
