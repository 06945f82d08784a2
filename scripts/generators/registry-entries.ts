import { globSync } from 'node:fs';
import path from 'node:path';
import { stringify } from 'yaml';
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
import { BUILTINS } from '../../src/extensions/builtins.ts';
import type { Generator } from './generator.ts';
import { listOf } from './scope-lists.ts';

const WRITTEN = 'Written by `npm run generate` from the code. Do not edit.';

/** Capabilities at their best: a machine or engine that can do less declares less. */
export const extensionEntries: readonly Generator[] = BUILTINS.map(
  ({ id, title, bestOn, capabilitiesAtBest }) => ({
    file: `registry/extensions/${id}.yaml`,
    render: () =>
      `# ${WRITTEN}\n${stringify({ id, title, at_best: bestOn, capabilities: capabilitiesAtBest })}`,
  }),
);

function profileIds(): string[] {
  const folder = path.resolve(import.meta.dirname, '../../profiles');
  return globSync('*/*.yaml', { cwd: folder })
    .map((file) => `profile.${path.dirname(file)}@${path.basename(file, '.yaml')}`)
    .sort();
}

/** Titles of the list in SCOPE.md: promises of the charter that nothing here fulfils yet. */
const NOT_YET = listOf('Not yet').map(({ title }) => title);

/** Requirements of a federation for every capability; the missing ones are read from `SCOPE.md`. */
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
  extensions: BUILTINS.map(({ id }) => id),
  profiles: profileIds(),
};

const ENTRY_FILE = `registry/capabilities/${CAPABILITY_ID}.md`;

/** Front matter for indexing programs, a page for people. */
export const capabilityEntry: Generator = {
  file: ENTRY_FILE,
  render: () =>
    `---\n${stringify(ENTRY)}---\n\n<!-- ${WRITTEN} -->\n\n# ${CAPABILITY_NAME}\n\n${CAPABILITY_SUMMARY}\n\nA running installation gives its own entry, with what it really has, at \`GET /v1/registry\` and by \`sandboxer registry export\`.\n`,
};

/** Document that a federation fetches first. */
export const capabilityIndex: Generator = {
  file: 'registry/indexes/capabilities.yaml',
  render: () =>
    `# ${WRITTEN}\n${stringify({ version: 1, domain: CAPABILITY_DOMAIN, capabilities: [rowOf(ENTRY, ENTRY_FILE)] })}`,
};
