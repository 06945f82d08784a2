import type { CapabilityVector, ResourceName } from '../../contract/extensions/capability.ts';
import type { HostFacts } from './host-facts.ts';

export interface LocalOptions {
  /** `<state_dir>/local`: everything it keeps lies below it. */
  readonly directory: string;
  /** `crun`, `runc`, or the path of one of them. Default: crun where it is, otherwise runc. */
  readonly runtime?: string;
  /** Folder of the agent and the spawner. Default: `agent/build`. */
  readonly binaries?: string;
  /** `false` leaves the kernel's control groups alone: no limits, and a pause stops what runs. */
  readonly cgroups?: boolean;
  /** Processes that wait to become a sandbox. */
  readonly launchers?: number;
  /** Most sandboxes that are kept running ahead of their claim; 0 turns it off. */
  readonly warm?: number;
  /** Put on a sandbox whose profile names no limit, so that none can take the whole machine. Default: 4096, or a 32nd of the machine's. */
  readonly defaultPids?: number;
  readonly defaultMemoryShare?: number;
  /** Default: half of what is free. */
  readonly defaultDiskMb?: number;
  /** Offers levels whose runtime failed its trial, too. For tests alone. */
  readonly untriedLevels?: boolean;
  /** How long the spawner stays when nothing runs and nobody is connected. */
  readonly lingerMs?: number;
}

export const DEFAULTS = {
  launchers: 8,
  warm: 0,
  defaultPids: 4096,
  defaultMemoryShare: 0.8,
  lingerMs: 60_000,
} as const;

const LIMITS: readonly (readonly [ResourceName, 'memory' | 'pids' | 'cpu'])[] = [
  ['cpu', 'cpu'],
  ['memory_mb', 'memory'],
  ['pids', 'pids'],
];

function limitsOn(facts: HostFacts): ResourceName[] {
  const enforced = LIMITS.filter(([, controller]) => facts.controllers.includes(controller));
  return [
    ...enforced.map(([name]) => name),
    ...(facts.diskMaker ? (['disk_mb'] as const) : []),
    'open_files',
  ];
}

/** A kernel of the sandbox's own is one process to this machine: it sees neither those inside nor which of them is too big. */
function differences(facts: HostFacts): Pick<CapabilityVector, 'levels'> {
  const { offered } = facts.levels;
  if (offered.size === 0) return {};
  const resources = limitsOn(facts).filter((name) => name !== 'pids');
  const each = { resources, memory_overrun: 'sandbox' as const };
  return { levels: Object.fromEntries([...offered.keys()].map((level) => [level, each])) };
}

/** Only what this machine can keep to. */
export function capabilitiesOn(facts: HostFacts): CapabilityVector {
  return {
    isolation: ['container', ...facts.levels.offered.keys()],
    egress: 'none',
    deny_all: true,
    open_network: false,
    credentials: ['file', 'env'],
    dead_man: 'extendable',
    snapshot: 'filesystem',
    snapshot_destructive: false,
    fork: true,
    pause: facts.controllers.includes('freezer') ? 'frozen' : 'stopped',
    persistence: ['ephemeral', 'persistent', 'checkpoint'],
    exec: true,
    pty: true,
    background: true,
    files: true,
    watch: true,
    ports: true,
    ssh: false,
    resources: limitsOn(facts),
    ...differences(facts),
    images: ['host', 'imported'],
    regions: [],
    gpu: [],
    max_ttl_seconds: null,
    pricing: 'free',
    latency_class: 'instant',
    hosting: 'self-hosted',
    volumes: true,
    no_new_privs: true,
    read_only_workspace: true,
    mounts: true,
    host_root: false,
    elevated: false,
    demo: false,
  };
}
