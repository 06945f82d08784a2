import type { CapabilityVector } from '../../contract/capability.ts';
import type { SshHostOptions } from '../shared/ssh/ssh-host.ts';
import type { AgentBinaries } from '../shared/ssh/upload-agent.ts';

export interface SshOptions {
  readonly agents: AgentBinaries;
  /** Below the home directory of the user on the host, unless it is absolute. */
  readonly directory?: string;
  readonly ssh?: SshHostOptions;
}

export const DIRECTORY = '.sandboxer';

/** A directory and a user: nothing is held back, and nothing is claimed to be. */
export const CAPABILITIES: CapabilityVector = {
  isolation: ['none'],
  egress: 'none',
  deny_all: false,
  open_network: true,
  credentials: [],
  dead_man: 'none',
  snapshot: 'none',
  snapshot_destructive: false,
  fork: false,
  pause: 'none',
  persistence: ['ephemeral'],
  exec: true,
  pty: true,
  background: true,
  // Paths could not be kept inside the directory: programs reach what their user reaches.
  files: false,
  watch: false,
  ports: true,
  ssh: true,
  resources: [],
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
