import { join, resolve } from 'node:path';
import { z } from 'zod';
import type { CapabilityVector, IsolationLevel, ResourceName } from '../../contract/extensions/capability.ts';
import type { ExtensionServices } from '../../core/ports/extension.ts';
import type { HostFacts } from './host/host-facts.ts';
import type { LocalOptions } from './host/options.ts';

export const LocalConfig = z.strictObject({
  enabled: z.boolean().optional().describe('Default: true on Linux.'),
  directory: z.string().optional().describe('Default: <state_dir>/local.'),
  runtime: z
    .string()
    .optional()
    .describe('crun, runc, or the path of one. Default: crun where it is, otherwise runc.'),
  cgroups: z.boolean().default(true).describe('Whether limits and pause are to be had by control groups.'),
  warm: z
    .number()
    .int()
    .min(0)
    .max(256)
    .optional()
    .describe('Most sandboxes kept running ahead of need, for all recipes together.'),
  default_disk_mb: z
    .number()
    .int()
    .min(64)
    .optional()
    .describe(
      'Most that a sandbox without `disk_mb` may write. Default: half of the free space when it is made. The use is counted; a sandbox above the limit is ended.',
    ),
  launchers: z.number().int().min(1).max(64).optional().describe('Processes that wait to become a sandbox.'),
});

/** Returns the options of the configuration; `null` where it is turned off. */
export function optionsOf(
  config: z.output<typeof LocalConfig>,
  { stateDir, env }: ExtensionServices,
): LocalOptions | null {
  const { enabled = process.platform === 'linux', directory, runtime, cgroups, warm, launchers } = config;
  const { default_disk_mb: defaultDiskMb } = config;
  if (!enabled || env.SANDBOXER_LOCAL === '0') return null;
  return {
    directory: resolve(directory ?? join(stateDir, 'local')),
    cgroups,
    ...(runtime === undefined ? {} : { runtime }),
    ...(warm === undefined ? {} : { warm }),
    ...(launchers === undefined ? {} : { launchers }),
    ...(defaultDiskMb === undefined ? {} : { defaultDiskMb }),
  };
}

/** Facts that the capability vector depends on. */
interface Means extends Pick<HostFacts, 'controllers' | 'diskMaker'> {
  readonly levels: { readonly offered: ReadonlyMap<IsolationLevel, unknown> };
}

const LIMITS: readonly (readonly [ResourceName, 'memory' | 'pids' | 'cpu'])[] = [
  ['cpu', 'cpu'],
  ['memory_mb', 'memory'],
  ['pids', 'pids'],
];

function limitsOn(facts: Means): ResourceName[] {
  const enforced = LIMITS.filter(([, controller]) => facts.controllers.includes(controller));
  return [
    ...enforced.map(([name]) => name),
    ...(facts.diskMaker ? (['disk_mb'] as const) : []),
    'open_files',
  ];
}

/**
 * Returns the differences of higher levels. A kernel of the sandbox's own is one process to this machine: the machine sees
 * neither the processes inside nor which of them is too big.
 */
function differences(facts: Means): Pick<CapabilityVector, 'levels'> {
  const { offered } = facts.levels;
  if (offered.size === 0) return {};
  const resources = limitsOn(facts).filter((name) => name !== 'pids');
  const each = { resources, memory_overrun: 'sandbox' as const };
  return { levels: Object.fromEntries([...offered.keys()].map((level) => [level, each])) };
}

/** Returns the capabilities that this machine can enforce. */
export function capabilitiesOn(facts: Means): CapabilityVector {
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
