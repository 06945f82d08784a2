import type { CapabilityVector, ResourceName } from '../../contract/extensions/capability.ts';
import type { HostFacts } from './host/host-facts.ts';

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
