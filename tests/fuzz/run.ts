/**
 * Fuzzes what reads bytes of strangers, built with address and undefined-behaviour checks: frames of the agent, archives that
 * the spawner and the agent unpack, requests of the spawner.
 *
 *   node tests/fuzz/run.ts [--seconds 30] [--seed 1]
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { below, mutate, randomOf } from './mutate.ts';
import { SanitizedSpawner } from './sanitized-spawner.ts';
import { ARCHIVES, FRAME_WORDS, FRAMES, framesOf, REQUEST_WORDS, REQUESTS, TAR_WORDS } from './seeds.ts';

const { values } = parseArgs({
  options: { seconds: { type: 'string', default: '30' }, seed: { type: 'string', default: '1' } },
  allowPositionals: false,
});
const seed = Number(values.seed);
const root = join(import.meta.dirname, '..', '..');
const folder = mkdtempSync(join(tmpdir(), 'sandboxer-fuzz-'));
const random = randomOf(seed);
const REPORT = /AddressSanitizer|runtime error:|DEADLYSIGNAL/;
const isRoot = process.getuid?.() === 0;

/** Keeps the input that led to a report, and ends the run. */
function fail(target: string, input: Buffer, report: string): never {
  const kept = join(tmpdir(), `sandboxer-fuzz-${target}-${seed}.bin`);
  writeFileSync(kept, input);
  process.stderr.write(`${target}: seed ${seed}, input in ${kept}\n${report.slice(0, 4000)}\n`);
  process.exit(1);
}

/** One connection of the agent: a greeting, then what was mutated. */
async function tryAgent(target: string, frames: Buffer): Promise<void> {
  const work = join(folder, 'work');
  mkdirSync(work, { recursive: true, mode: 0o777 });
  const agent = join(root, 'agent', 'build', 'sandboxer-agent-sanitized');
  const guard = isRoot
    ? ['unshare', '--mount', '--pid', '--net', '--ipc', '--uts', '--fork', '--kill-child', '--mount-proc']
    : ['timeout', '20'];
  const script = isRoot
    ? 'mount --bind "$0" "$0" && mount -o remount,bind,ro / && exec setpriv --reuid 65534 --regid 65534 --clear-groups "$@"'
    : 'exec "$@"';
  const command = [...guard, 'sh', '-c', script, folder, agent, '--stdio', '--cwd', work];
  const child = spawn(command[0] as string, command.slice(1), {
    stdio: ['pipe', 'ignore', 'pipe'],
    env: { PATH: process.env.PATH, ASAN_OPTIONS: 'detect_leaks=0' },
  });
  let report = '';
  child.stderr.on('data', (text) => {
    report += text;
  });
  child.stdin.on('error', () => {});
  child.stdin.end(frames);
  const late = setTimeout(() => child.kill('SIGKILL'), 10_000);
  await once(child, 'close');
  clearTimeout(late);
  if (REPORT.test(report)) fail(target, frames, report);
}

async function send(spawner: SanitizedSpawner, line: Buffer): Promise<void> {
  const socket = await spawner.connect();
  socket.resume();
  socket.end(Buffer.concat([line, Buffer.from('\n9\thello\n')]));
  await Promise.race([once(socket, 'close'), new Promise((resolve) => setTimeout(resolve, 2_000).unref())]);
  socket.destroy();
}

function judge(spawner: SanitizedSpawner, target: string, input: Buffer): void {
  if (spawner.ended || REPORT.test(spawner.log)) fail(target, input, spawner.log);
}

async function unpack(spawner: SanitizedSpawner, archive: Buffer): Promise<void> {
  writeFileSync(join(spawner.base, 'layers', 'in.tar'), archive);
  const fields = `from=layers/in.tar\tto=layers/out\tentries=500\tbytes=4000000\tmarks=${below(random, 2)}`;
  const socket = await spawner.connect();
  socket.write(`1\tunpack\t${fields}\n`);
  await once(socket, 'data');
  socket.destroy();
  rmSync(join(spawner.base, 'layers', 'out'), { recursive: true, force: true });
}

const counts = { requests: 0, archives: 0, frames: 0, trees: 0 };
execFileSync('sh', [join(root, 'scripts', 'build-agent.sh'), '--sanitize'], { stdio: 'inherit' });
execFileSync('sh', [join(root, 'scripts', 'build-spawner.sh'), '--sanitize'], { stdio: 'inherit' });
const binary = join(root, 'agent', 'build', 'sandboxer-spawner-sanitized');
const spawner = isRoot ? await SanitizedSpawner.start(folder, binary) : null;
const end = Date.now() + Number(values.seconds) * 1000;
try {
  if (spawner !== null) {
    judge(spawner, 'start', Buffer.alloc(0));
    for (const archive of ARCHIVES) await unpack(spawner, archive);
  }
  while (Date.now() < end) {
    for (let round = 0; spawner !== null && round < 20; round++) {
      const request = mutate(random, REQUESTS, REQUEST_WORDS, 40_000);
      // It would leave: what is tried here is not how it goes.
      if (/\tretire/.test(request.toString('latin1'))) continue;
      await send(spawner, request);
      counts.requests += 1;
      judge(spawner, 'requests', request);
      const archive = mutate(random, ARCHIVES, TAR_WORDS, 1 << 20);
      await unpack(spawner, archive);
      counts.archives += 1;
      judge(spawner, 'archives', archive);
    }
    const frames = mutate(random, FRAMES, FRAME_WORDS, 1 << 20);
    await tryAgent('frames', framesOf.greeted(frames));
    counts.frames += 1;
    await tryAgent('trees', framesOf.unpacking(mutate(random, ARCHIVES, TAR_WORDS, 1 << 20)));
    counts.trees += 1;
  }
} finally {
  await spawner?.stop();
  rmSync(folder, { recursive: true, force: true });
}
const told = Object.entries(counts).map(([name, count]) => `${count} ${name}`);
process.stdout.write(`fuzz: ${told.join(', ')}; seed ${seed}; no report\n`);
if (counts.frames === 0 || (isRoot && counts.archives === 0)) process.exit(1);
