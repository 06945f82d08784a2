/** Every field of the model, for compose 1.29 as it is installed here: its own reader is asked about each file. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { SandboxerError } from '../../../src/contract/errors/errors.ts';
import { loadProject } from '../../../src/extensions/compose-ssh/compose/load/load-project.ts';
import {
  HOSTILE_TREE,
  hostileSites,
} from '../../../src/extensions/compose-ssh/compose/model/hostile-stacks.ts';
import { readStack } from '../../../src/extensions/compose-ssh/compose/model/read-stack.ts';
import { planStack } from '../../../src/extensions/compose-ssh/compose/plan/plan-stack.ts';
import { memoryTree } from '../../../src/extensions/compose-ssh/compose/tree/memory-tree.ts';
import type { Tree } from '../../../src/extensions/compose-ssh/compose/yaml/compose-yaml.ts';
import { Findings } from '../../../src/extensions/compose-ssh/compose/yaml/finding.ts';

/** The Python that Debian's docker-compose runs by. */
const PYTHON = '/usr/bin/python3';
const MISSING = spawnSync(PYTHON, ['-c', 'import compose.config']).status !== 0;
/** Prints for each file what compose says of it: nothing when it takes the file. */
const READER = `
import json, os, sys
from compose.config import config
from compose.config.environment import Environment
directory = sys.argv[1]
said = {}
for name in sorted(os.listdir(directory)):
    path = os.path.join(directory, name)
    try:
        details = config.ConfigDetails(directory, [config.ConfigFile.from_filename(path)], Environment())
        config.load(details)
    except Exception as error:
        said[name] = str(error)
print(json.dumps(said))
`;

/** Contexts of builds must be there. */
const STACK = mkdtempSync(join(tmpdir(), 'sbx-older-stack-'));
mkdirSync(join(STACK, 'tree/dir'), { recursive: true });
afterAll(() => rmSync(STACK, { recursive: true }));

async function planOf(stack: Tree, composeVersion: string | null) {
  const text = stringify(stack, { defaultStringType: 'QUOTE_DOUBLE', defaultKeyType: 'QUOTE_DOUBLE' });
  const tree = memoryTree({ ...HOSTILE_TREE, 'compose.yaml': text });
  const findings = new Findings();
  const project = await loadProject(tree, { files: [], env: {}, profiles: [] }, findings);
  const model = readStack({ project, tree, findings, given: new Set() });
  findings.settle(true);
  const terms = {
    project: 'sbxtest',
    labels: {},
    openNetwork: true,
    resources: { cpu: null, memory_mb: null, disk_mb: null, pids: null, open_files: null, gpu: null },
    elevated: true,
    fromSeed: false,
    variables: {},
    secrets: [],
    directory: STACK,
    secretDirectory: '/secrets',
    agent: '/agent',
    gatewayImage: 'gateway',
    subnets: ['10.99.0.0/28', '10.99.0.16/28', '10.99.0.32/28'],
    composeVersion,
    unheld: [],
  };
  return planStack(model, tree, terms, findings);
}

/** Returns what the reader of compose 1.29 says against files, by the place that each is about. */
function refusedByCompose(files: ReadonlyMap<string, string>): Record<string, string> {
  const directory = mkdtempSync(join(tmpdir(), 'sbx-older-'));
  try {
    const places = [...files.keys()];
    for (const [n, place] of places.entries())
      writeFileSync(join(directory, `${n}.yml`), files.get(place) ?? '');
    const { stdout, stderr } = spawnSync(PYTHON, ['-W', 'ignore', '-c', READER, directory], {
      encoding: 'utf8',
      maxBuffer: 2 ** 26,
    });
    if (stdout === '') throw new Error(stderr);
    const said = Object.entries(JSON.parse(stdout) as Record<string, string>);
    return Object.fromEntries(said.map(([name, text]) => [places[Number.parseInt(name, 10)], text]));
  } finally {
    rmSync(directory, { recursive: true });
  }
}

describe.skipIf(MISSING)('compose 1.29', { timeout: 300_000 }, () => {
  it('fields: every emitted file is accepted, and a field that is too new is refused by name', async () => {
    const files = new Map<string, string>();
    const refused: string[] = [];
    for (const site of hostileSites()) {
      const stack = site.with(site.example);
      // Where even the newest is given no file, the example itself is refused.
      if ((await planOf(stack, null).catch(() => null)) === null) continue;
      const plan = await planOf(stack, '1.29').catch((error: unknown) => error);
      if (plan instanceof SandboxerError) {
        expect(plan.code).toBe('SBX_UNSUPPORTED');
        expect(plan.remedy).not.toBe('');
        expect(plan.detail).toMatch(/needs compose 2\.[\d.]+, and the host has 1\.29/);
        refused.push(plan.extras.field ?? '');
      } else files.set(site.path, (plan as { file: string }).file);
    }
    expect(files.size).toBeGreaterThan(150);
    expect(refusedByCompose(files)).toEqual({});
    expect(new Set(refused)).toContain('services.web.cgroup');
  });

  it('tmpfs.mode: refused with another way to write it, which keeps the mode', async () => {
    const volumes = [{ type: 'tmpfs', target: '/run/app', tmpfs: { mode: 0o1777 } }];
    const error = await planOf({ services: { web: { image: 'x', volumes } } }, '1.29').catch((e) => e);
    expect(error.extras.field).toBe('services.web.volumes.0.tmpfs.mode');
    expect(error.remedy).toContain('/path:mode=1777');
    const other = { services: { web: { image: 'x', tmpfs: ['/run/app:mode=1777'] } } };
    expect((await planOf(other, '1.29')).file).toContain('mode=1777');
  });

  it('start_interval: left out with a note that names both versions', async () => {
    const healthcheck = { test: ['CMD', 'true'], start_interval: '1s' };
    const stack = { services: { web: { image: 'x', healthcheck } } };
    expect((await planOf(stack, '2.24.5')).file).toContain('start_interval');
    const { file, notes } = await planOf(stack, '1.29');
    expect(file).not.toContain('start_interval');
    expect(notes).toContain(
      'web: left out: healthcheck.start_interval: it needs compose 2.20.2, and the host has 1.29.',
    );
  });

  it('container_name, configs.mode: left out with a note', async () => {
    const web = { image: 'x', container_name: 'mine', configs: [{ source: 'settings', mode: '0440' }] };
    const stack = { services: { web }, configs: { settings: { content: 'x' } } };
    expect((await planOf(stack, '1.29')).notes).toContain('web: left out: container_name, configs.mode.');
  });
});
