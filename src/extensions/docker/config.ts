import type { CapabilityVector, ResourceName } from '../../contract/extensions/capability.ts';
import type { DockerOptions } from './containers/options.ts';
import { canLimitDisk } from './containers/options.ts';
import type { EngineFacts } from './engine/engine-facts.ts';
import type { Levels } from './inspect/levels.ts';

/**
 * Only what this engine can keep to. One that was not there to be asked has what every supported one has. On a `bare` one
 * the agent runs nowhere.
 */
export function capabilitiesOf(
  facts: EngineFacts | null,
  options: DockerOptions,
  levels: Levels,
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
