import { globSync } from 'node:fs';
import path from 'node:path';
import { stringify } from 'yaml';
import type { CapabilityVector } from '../../src/contract/capability.ts';
import {
  CAPABILITY_ID,
  CAPABILITY_SUMMARY,
  CAPABILITY_TITLE,
  OPERATIONS,
} from '../../src/contract/capability-entry.ts';
import { API_VERSION } from '../../src/contract/version.ts';
import { CAPABILITIES as COMPOSE } from '../../src/extensions/compose-ssh/config.ts';
import { capabilitiesOf } from '../../src/extensions/docker/config.ts';
import { NO_LEVELS } from '../../src/extensions/docker/levels.ts';
import { capabilitiesOn } from '../../src/extensions/local/config.ts';
import { CAPABILITIES as STUB } from '../../src/extensions/saas-stub/config.ts';
import { CAPABILITIES as SSH } from '../../src/extensions/ssh/config.ts';
import type { Generator } from './generator.ts';

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

/** Front matter for whoever indexes it, a page for whoever reads it. */
export const capabilityEntry: Generator = {
  file: `registry/capabilities/${CAPABILITY_ID}.md`,
  render() {
    const front = {
      id: CAPABILITY_ID,
      title: CAPABILITY_TITLE,
      owner: 'sand-boxer',
      api: { version: API_VERSION, openapi: 'docs/reference/openapi.json' },
      operations: [...OPERATIONS],
      extensions: EXTENSIONS.map(({ id }) => id),
      profiles: profileIds(),
    };
    return `---\n${stringify(front)}---\n\n<!-- ${WRITTEN} -->\n\n# ${CAPABILITY_TITLE}\n\n${CAPABILITY_SUMMARY}\n\nA running installation gives its own entry, with what it really has, at \`GET /v1/registry\` and by \`sandboxer registry export\`.\n`;
  },
};
