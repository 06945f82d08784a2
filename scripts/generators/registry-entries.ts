import { globSync } from 'node:fs';
import path from 'node:path';
import { stringify } from 'yaml';
import type { CapabilityVector } from '../../src/contract/extensions/capability.ts';
import {
  CAPABILITY_DOMAIN,
  CAPABILITY_ID,
  CAPABILITY_NAME,
  CAPABILITY_OWNER,
  CAPABILITY_STATUS,
  CAPABILITY_SUMMARY,
  OPERATIONS,
} from '../../src/contract/extensions/capability-entry.ts';
import type { FederatedCapability } from '../../src/contract/extensions/federated-capability.ts';
import { rowOf } from '../../src/contract/extensions/federated-capability.ts';
import { API_VERSION } from '../../src/contract/values/version.ts';
import { CAPABILITIES as COMPOSE } from '../../src/extensions/compose-ssh/config.ts';
import { capabilitiesOf } from '../../src/extensions/docker/config.ts';
import { NO_LEVELS } from '../../src/extensions/docker/inspect/levels.ts';
import { capabilitiesOn } from '../../src/extensions/local/config.ts';
import { CAPABILITIES as STUB } from '../../src/extensions/saas-stub/config.ts';
import { CAPABILITIES as SSH } from '../../src/extensions/ssh/config.ts';
import type { Generator } from './generator.ts';
import { listOf } from './scope-lists.ts';

interface Listed {
  readonly id: string;
  readonly title: string;
  /** What the vector depends on, where it depends on something. */
  readonly at_best: string | null;
  readonly capabilities: CapabilityVector;
}

/** At their best: a machine or engine that can do less declares less. */
const EXTENSIONS: readonly Listed[] = [
  {
    id: 'ext.local',
    title: 'This machine',
    at_best: 'root on Linux with crun, mkfs.ext4 and runsc of November 2023 or newer',
    capabilities: capabilitiesOn({
      controllers: ['cpu', 'memory', 'pids', 'freezer'],
      diskMaker: 'mkfs.ext4',
      levels: { offered: new Map([['gvisor', {}]]) },
    } as unknown as Parameters<typeof capabilitiesOn>[0]),
  },
  {
    id: 'ext.docker',
    title: 'Docker',
    at_best: 'an engine with all cgroup controllers',
    capabilities: capabilitiesOf(
      null,
      { network: null, defaultImage: null } as unknown as Parameters<typeof capabilitiesOf>[1],
      NO_LEVELS,
    ),
  },
  {
    id: 'ext.compose-ssh',
    title: 'Compose stacks on registered hosts',
    at_best: 'a registered host with an engine and compose',
    capabilities: COMPOSE,
  },
  { id: 'ext.ssh', title: 'A directory on a host', at_best: 'a registered host', capabilities: SSH },
  { id: 'ext.saas-stub', title: 'The stub backend', at_best: null, capabilities: STUB },
];

const WRITTEN = 'Written by `npm run generate` from the code. Do not edit.';

export const extensionEntries: readonly Generator[] = EXTENSIONS.map((listed) => ({
  file: `registry/extensions/${listed.id}.yaml`,
  render: () => `# ${WRITTEN}\n${stringify(listed)}`,
}));

function profileIds(): string[] {
  const folder = path.resolve(import.meta.dirname, '../../profiles');
  return globSync('*/*.yaml', { cwd: folder })
    .map((file) => `profile.${path.dirname(file)}@${path.basename(file, '.yaml')}`)
    .sort();
}

/** The titles of SCOPE.md's list: what the charter promises and nothing here does. */
const NOT_YET = listOf('Not yet').map(({ title }) => title);

/** What a federation asks of every capability; what is missing is read from `SCOPE.md`. */
const ENTRY: FederatedCapability = {
  id: CAPABILITY_ID,
  name: CAPABILITY_NAME,
  summary: CAPABILITY_SUMMARY,
  owner: CAPABILITY_OWNER,
  status: CAPABILITY_STATUS,
  domain: CAPABILITY_DOMAIN,
  tags: ['sandbox', 'isolation', 'execution', 'agents', 'routing', 'metering'],
  maturity: {
    discovery: {
      current: 'D5',
      target: 'D6',
      confidence: 'high',
      rationale: 'INTENT.md, SCOPE.md, the extension contract and the integration pages bound it.',
    },
    availability: {
      current: 'A4',
      target: 'A5',
      confidence: 'medium',
      rationale:
        'HTTP API with OpenAPI, command line, TypeScript client and a package; no release is published.',
    },
  },
  external_evidence: {
    completeness: {
      level: 'C2',
      confidence: 'medium',
      satisfied_expectations: [
        'create, exec, files, ports, snapshots, forks and verified teardown by profile',
        'routing over several backends with the recorded reasons',
        'credits, holds, budgets and a billing export',
        'lifecycle events to State Hub and webhooks',
      ],
      broken_expectations: NOT_YET,
      out_of_scope_expectations: [
        'agent gateway, tools and memory (glas-harness)',
        'tests and verdicts (wise-validator)',
        'code generation (snuggle-inventor)',
      ],
    },
    reliability: {
      level: 'R0',
      confidence: 'low',
      known_reliability_risks: ['No consumer has reported yet; all evidence is of the tests of the project.'],
    },
  },
  consumption_modes: ['HTTP API', 'CLI (sandboxer)', 'TypeScript client (sand-boxer/client)'],
  api: { version: API_VERSION, openapi: 'docs/reference/openapi.json' },
  operations: [...OPERATIONS],
  extensions: EXTENSIONS.map(({ id }) => id),
  profiles: profileIds(),
};

const ENTRY_FILE = `registry/capabilities/${CAPABILITY_ID}.md`;

/** Front matter for programs that index it, a page for people. */
export const capabilityEntry: Generator = {
  file: ENTRY_FILE,
  render: () =>
    `---\n${stringify(ENTRY)}---\n\n<!-- ${WRITTEN} -->\n\n# ${CAPABILITY_NAME}\n\n${CAPABILITY_SUMMARY}\n\nA running installation gives its own entry, with what it really has, at \`GET /v1/registry\` and by \`sandboxer registry export\`.\n`,
};

/** What a federation fetches first. */
export const capabilityIndex: Generator = {
  file: 'registry/indexes/capabilities.yaml',
  render: () =>
    `# ${WRITTEN}\n${stringify({ version: 1, domain: CAPABILITY_DOMAIN, capabilities: [rowOf(ENTRY, ENTRY_FILE)] })}`,
};
