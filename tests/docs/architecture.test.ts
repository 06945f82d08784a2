/** `docs/architecture.md` compared with the tree, and its walks with what a real server does. */
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DocWorld } from './doc-world.ts';
import { RequestTracer } from './request-tracer.ts';
import { ROOT } from './run-document.ts';
import { pathsIn } from './source-paths.ts';

/** "`POST /v1/sandboxes` walks at most ten files down the spine." */
const MOST_FILES_DOWN = 10;

const read = (file: string) => readFileSync(path.join(ROOT, file), 'utf8');
const page = read('docs/architecture.md');

function section(title: string, level: string): string {
  const found = page.split(new RegExp(`^${level} `, 'm')).find((part) => part.startsWith(`${title}\n`));
  if (found === undefined) throw new Error(`docs/architecture.md has no section "${title}".`);
  return found;
}

/** The walk of a request: the first path of each numbered item. */
function walkOf(title: string): string[] {
  return [...section(title, '###').matchAll(/^\d+\. `([^`]+)`/gm)].map(([, file = '']) => file);
}

/** Every file that the section of a walk names. */
function filesOf(title: string): string[] {
  return pathsIn(section(title, '###')).filter((file) => file.startsWith('src/'));
}

describe('the walks of docs/architecture.md', () => {
  let world: DocWorld;
  let server: RequestTracer;
  let exec: string;

  beforeAll(async () => {
    world = await DocWorld.open();
    world.run('daemon', 'stop');
    server = await RequestTracer.start(world.env);
    exec = walkOf('Exec').at(-1) as string;
  });
  afterAll(async () => {
    await server?.stop();
    await world?.close();
  });

  const request = { profile: 'profile.stub-basic', id: 'walk' };
  const backend = walkOf('Create').at(-1) as string;
  const missing = (title: string, executed: ReadonlySet<string>) =>
    filesOf(title).filter((file) => !executed.has(file));

  it('create: the page lists the call stack at the provision of the backend, at most 10 files', async () => {
    const stop = { file: backend, head: 'async provision(' };
    const { answer, down, executed } = await server.trace(stop, 'POST', '/v1/sandboxes', request);
    expect(answer.status).toBe(201);
    expect(down).toEqual(walkOf('Create'));
    expect(down.length).toBeLessThanOrEqual(MOST_FILES_DOWN);
    expect(missing('Create', executed)).toEqual([]);
  });

  it('create: the probe is reached by the same files, in the place of the provision', async () => {
    const stop = { file: backend, head: 'async waitReady(' };
    const { down } = await server.trace(stop, 'POST', '/v1/sandboxes', { ...request, id: 'walk-2' });
    expect(down).toEqual(walkOf('Create').map((file) => file.replace('/provision.ts', '/probe.ts')));
    expect(down).not.toEqual(walkOf('Create'));
  });

  it('exec: the page lists the call stack at the start of the program', async () => {
    const stop = { file: exec, head: 'async spawn(' };
    const command = { command: ['true'] };
    const { answer, down, executed } = await server.trace(stop, 'POST', '/v1/sandboxes/walk/exec', command);
    expect(answer.json).toMatchObject({ exit: { code: 0 } });
    expect(down).toEqual(walkOf('Exec'));
    expect(missing('Exec', executed)).toEqual([]);
  });

  it('destroy: the page lists the call stack at the teardown of the backend', async () => {
    const stop = { file: backend, head: 'async teardown(' };
    const { answer, down, executed } = await server.trace(stop, 'DELETE', '/v1/sandboxes/walk');
    expect(answer.json).toMatchObject({ state: 'destroyed' });
    expect(down).toEqual(walkOf('Destroy'));
    expect(missing('Destroy', executed)).toEqual([]);
  });

  it('trace: a file that a request does not reach is not counted as executed', async () => {
    const stop = { file: backend, head: 'async provision(' };
    const { executed } = await server.trace(stop, 'POST', '/v1/sandboxes', { ...request, id: 'walk-3' });
    const ran = (file: string) => executed.has(`src/control/sandboxes/${file}`);
    expect(['create-sandbox.ts', 'destroy-sandbox.ts'].map(ran)).toEqual([true, false]);
  });
});

it('sessions: the page names every class and function that makes a session', () => {
  const sources = globSync('src/{control,extensions}/**/*.ts', { cwd: ROOT }).map(read);
  const classes = sources.flatMap((text) =>
    [...text.matchAll(/class (\w+) implements SandboxSession/g)].map(([, name = '']) => name),
  );
  const wrappers = sources
    .filter((text) => /const \w+: SandboxSession = \{/.test(text))
    .flatMap((text) => [...text.matchAll(/^export function (\w+)/gm)].map(([, name = '']) => name));
  expect(classes.length).toBeGreaterThan(5);
  expect(wrappers).toEqual(['judgedChannel']);
  const text = section('Sessions', '##');
  expect([...classes, ...wrappers].filter((name) => !text.includes(`\`${name}\``))).toEqual([]);
});

it('spawner: the page names every process name that the spawner gives, and no other', () => {
  const sources = globSync('agent/spawner/**/*.c', { cwd: ROOT }).map(read);
  const given = sources.flatMap((text) =>
    [...text.matchAll(/^.*(?:PR_SET_NAME|child_begins).*$/gm)].flatMap(([line]) =>
      [...line.matchAll(/"(sbx-[a-z]+)"/g)].map(([, name = '']) => name),
    ),
  );
  const named = [...section('Processes of the spawner', '##').matchAll(/`(sbx-[a-z]+)`/g)].map(
    ([, name = '']) => name,
  );
  expect(new Set(given).size).toBeGreaterThan(5);
  expect([...new Set(named)].sort()).toEqual([...new Set(given)].sort());
});
