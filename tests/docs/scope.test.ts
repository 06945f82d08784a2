/** The lists of SCOPE.md, compared with what there is. */
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { listOf } from '../../scripts/generators/scope-lists.ts';
import { findCommand } from '../../src/cli/command-table.ts';
import type { CapabilityVector } from '../../src/contract/extensions/capability.ts';
import {
  FederatedCapability,
  RepoClassification,
} from '../../src/contract/extensions/federated-capability.ts';
import type { Profile } from '../../src/contract/profiles/profile.ts';
import { ROUTE_TABLE } from '../../src/http/server/route-table.ts';
import { TestServer } from '../support/test-server.ts';
import { ROOT } from './run-document.ts';

const read = (file: string) => readFileSync(path.join(ROOT, file), 'utf8');
const now = listOf('Possible now');
const notYet = listOf('Not yet');
const namesIn = (list: typeof now, prefix: string) =>
  list.flatMap(({ names }) => names).filter((name) => name.startsWith(prefix));

const vectors = globSync('registry/extensions/*.yaml', { cwd: ROOT }).map(
  (file) => parse(read(file)) as { id: string; capabilities: CapabilityVector },
);
const profiles = globSync('profiles/*/*.yaml', { cwd: ROOT }).map((file) => parse(read(file)) as Profile);
const builtIn = vectors.map(({ id }) => id);
const every = (test: (vector: CapabilityVector) => boolean) =>
  vectors.every(({ capabilities }) => test(capabilities));
const hasRoute = (pattern: RegExp) => ROUTE_TABLE.some(({ url }) => pattern.test(url));
const isMissing = (...ids: string[]) => ids.every((id) => !builtIn.includes(id));

/** Items that name backends which are missing as a whole; others name what one that is there does not do. */
const WHOLE_BACKENDS = ['Vendors', 'Virtual machines by Packer', 'Policy runtimes and clusters'];

/** What shows that an item of the list is not there. An item that lands leaves both. */
const MISSING: Readonly<Record<string, () => boolean>> = {
  'Allowed destinations': () => every(({ egress }) => egress === 'none'),
  'Brokered secrets': () => every(({ credentials }) => !credentials.includes('broker')),
  Vendors: () => every(({ hosting, demo }) => hosting === 'self-hosted' || demo),
  'Virtual machines by Packer': () => isMissing('ext.vm-packer'),
  'Policy runtimes and clusters': () => isMissing('ext.openshell', 'ext.kubernetes'),
  GPUs: () => every(({ gpu, resources }) => gpu.length === 0 && !resources.includes('gpu')),
  Dashboard: () => !hasRoute(/^\/(?:dashboard.*)?$/),
  'MCP server': () => findCommand('mcp') === undefined && !hasRoute(/mcp/),
  'Compatible APIs': () => !hasRoute(/^\/(?:sandboxes|e2b)/),
};

describe('SCOPE.md', () => {
  it('backends: those of the registry are possible now, and no other', () => {
    expect([...new Set(namesIn(now, 'ext.'))].sort()).toEqual([...builtIn].sort());
    const waiting = notYet.filter(({ title }) => WHOLE_BACKENDS.includes(title));
    expect(waiting.map(({ title }) => title)).toEqual(WHOLE_BACKENDS);
    expect(namesIn(waiting, 'ext.')).toContain('ext.e2b');
    expect(namesIn(waiting, 'ext.').filter((id) => builtIn.includes(id))).toEqual([]);
  });

  it('profiles: each shipped one is in the list of its backend', () => {
    const waits = ({ extension }: Profile) => typeof extension === 'string' && !builtIn.includes(extension);
    const ids = (chosen: Profile[]) => chosen.map(({ id }) => id).sort();
    expect(namesIn(now, 'profile.').sort()).toEqual(ids(profiles.filter((profile) => !waits(profile))));
    expect(namesIn(notYet, 'profile.').sort()).toEqual(ids(profiles.filter(waits)));
  });

  it('items of "Not yet": each is missing, and each is looked for', () => {
    expect(notYet.map(({ title }) => title)).toEqual(Object.keys(MISSING));
    for (const [title, isAbsent] of Object.entries(MISSING))
      expect([title, isAbsent()]).toEqual([title, true]);
  });

  it('commands and routes of "Possible now": each exists', () => {
    const commands = namesIn(now, 'sandboxer ').map((line) => line.split(' ')[1] ?? '');
    expect(commands.length).toBeGreaterThan(20);
    expect(commands.filter((name) => findCommand(name) === undefined)).toEqual([]);
    const routes = namesIn(now, '/v1/');
    expect(routes.length).toBeGreaterThan(3);
    expect(routes.filter((url) => !ROUTE_TABLE.some((route) => route.url === url))).toEqual([]);
  });

  it('INTENT.md: the projects are those of the integration pages, and it leads to both lists', () => {
    const intent = read('INTENT.md');
    expect(intent).toContain('(SCOPE.md#possible-now)');
    const pages = globSync('docs/integrations/*.md', { cwd: ROOT }).map((file) => path.basename(file, '.md'));
    const rows = [...intent.matchAll(/^\| [^|]+ \| ([^|]+) \| [^|]+ \|$/gm)].slice(1);
    const projects = rows.flatMap(([, owners = '']) => owners.split(', ').map((name) => name.trim()));
    expect(projects.sort()).toEqual(pages.filter((name) => name !== 'README').sort());
  });
});

describe('the shipped profiles on a server', () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await TestServer.start();
  });
  afterAll(() => server.close());

  it('profiles of "Not yet": each is listed as unavailable and names the backend that is missing', async () => {
    const { items } = await server.expect(200, 'GET', '/v1/profiles');
    for (const id of namesIn(notYet, 'profile.')) {
      const shown = items.find((item: { profile: Profile }) => item.profile.id === id);
      const { extension } = profiles.find((profile) => profile.id === id) as Profile;
      expect(shown).toMatchObject({
        available: false,
        unavailable_reason: expect.stringContaining(`${extension}`),
      });
    }
  });
});

describe('.repo-classification.yaml', () => {
  it('repo classification: has the fields of the standard, and agrees with the capability entry', () => {
    const { repo_classification } = RepoClassification.parse(parse(read('.repo-classification.yaml')));
    const [, front = ''] = read('registry/capabilities/capability.execution.sandbox-provision.md').split(
      '---\n',
    );
    const entry = FederatedCapability.parse(parse(front));
    expect(repo_classification).toMatchObject({ domain: entry.domain, capability_tags: entry.tags });
    expect(entry.status).toBe('draft');
    expect(entry.external_evidence.completeness.broken_expectations).toEqual(Object.keys(MISSING));
  });
});
