/** Runs the probe, and compares what came of each attempt with what is expected of it. */
import type { ChildProcess } from 'node:child_process';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, globSync, mkdtempSync, readFileSync, readlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { SandboxerError } from '../../../src/contract/errors/errors.ts';
import type { SandboxSession } from '../../../src/core/ports/session.ts';
import { bytesFrom } from '../../../src/testing/conformance/bytes.ts';
import { runProgram, spawnSpec } from '../../../src/testing/conformance/run-program.ts';
import { ALL_ATTEMPTS } from './all-attempts.ts';
import { ARCHIVES } from './archives.ts';
import type { Attempt, AttemptClass, Expected, Setting } from './attempt.ts';
import { expectedOf } from './attempt.ts';

export interface Outcome {
  /** `reached`: the kernel did not refuse, but found fault with the arguments, or ended the program. */
  readonly what: 'open' | 'reached' | 'refused' | 'absent' | 'killed' | 'not tried';
  readonly why: string;
}

/** What `probe --serve` offers in one place. */
export interface Offer {
  readonly NAME: string;
  readonly KEY: string;
  readonly PORT: string;
  /** As the host counts. */
  readonly PID: string;
}

export interface Tried {
  readonly of: AttemptClass;
  readonly attempt: Attempt;
  readonly outcome: Outcome;
}

const everyAttempt = ALL_ATTEMPTS.flatMap((of) => of.attempts.map((attempt) => ({ of, attempt })));
const isArchive = ({ attempt }: { readonly attempt: Attempt }) => attempt.how.startsWith('archive ');

/** The path of the probe, or why there is none. */
export function builtProbe(): { readonly path: string; readonly whyNot: string | null } {
  const path = join(mkdtempSync(join(tmpdir(), 'sandboxer-probe-')), 'probe');
  chmodSync(join(path, '..'), 0o755);
  const sources = globSync(join(import.meta.dirname, '*.c'));
  const { status, stderr } = spawnSync(process.env.CC ?? 'cc', ['-O1', '-static', '-o', path, ...sources]);
  return {
    path,
    whyNot: status === 0 ? null : `the probe cannot be built: ${String(stderr ?? 'no C compiler')}`,
  };
}

/** The host's own namespaces, in which the probe refuses to run. */
export const hostNamespaces = () => ['mnt', 'uts'].map((kind) => readlinkSync(`/proc/self/ns/${kind}`));

type Offers = Readonly<Record<'HOST' | 'OTHER' | 'OWN', Offer>>;

function filled(how: string, offers: Offers | null): string {
  return how.replace(/\{(HOST|OTHER|OWN)_(NAME|KEY|PORT|PID)\}/g, (_, whose, what) => {
    if (offers === null) throw new Error(`nothing is offered for: ${how}`);
    return offers[whose as keyof Offers][what as keyof Offer];
  });
}

const linesOf = (attempts: readonly { readonly attempt: Attempt }[], offers: Offers | null) =>
  attempts.map(({ attempt }, n) => `${n} ${filled(attempt.how, offers)}\n`).join('');

function readOutcomes(stdout: string): Map<number, Outcome> {
  const rows = stdout
    .trim()
    .split('\n')
    .map((line) => line.split('\t'));
  return new Map(rows.map(([n, what, why = '']) => [Number(n), { what: what as Outcome['what'], why }]));
}

const NOT_TRIED: Outcome = { what: 'not tried', why: 'the probe ended before it' };

/** Performs all attempts in a sandbox, as one of its users. */
export async function tryInside(
  {
    session,
    probe,
    user,
  }: { readonly session: SandboxSession; readonly probe: string; readonly user: string | null },
  offers: Offers,
): Promise<Tried[]> {
  const byProbe = everyAttempt.filter((one) => !isArchive(one));
  const { stdout } = await runProgram(session, [probe, ...hostNamespaces()], {
    user,
    input: linesOf(byProbe, offers),
    timeoutSeconds: 120,
  });
  const outcomes = readOutcomes(stdout.toString());
  const tried: Tried[] = byProbe.map((one, n) => ({ ...one, outcome: outcomes.get(n) ?? NOT_TRIED }));
  for (const one of everyAttempt.filter(isArchive))
    tried.push({ ...one, outcome: await sendArchive(session, one.attempt) });
  return tried;
}

async function sendArchive(session: SandboxSession, { how }: Attempt): Promise<Outcome> {
  const archive = ARCHIVES[how.slice('archive '.length)];
  const { files } = session;
  if (files === undefined || archive === undefined) return NOT_TRIED;
  const folder = `archives-${Object.keys(ARCHIVES).indexOf(how.slice('archive '.length))}`;
  const refusal = await files.upload(`${folder}/base`, bytesFrom(archive)).then(
    () => null,
    (error: unknown) => error,
  );
  if (refusal === null) return { what: 'open', why: 'it was accepted' };
  if (!(refusal instanceof SandboxerError) || refusal.code === 'SBX_EXTENSION_FAILED')
    return { what: 'reached', why: String(refusal) };
  const script = `ls -A ${folder} 2>/dev/null | grep -v '^base$'; ls -d /tmp/beside /etc/beside 2>/dev/null; true`;
  const { stdout } = await runProgram(session, ['/bin/sh', '-c', script]);
  const beside = stdout.toString().trim();
  return beside === '' ? { what: 'refused', why: refusal.code } : { what: 'open', why: `it wrote ${beside}` };
}

/** As root in namespaces of its own, without any other wall. */
export async function tryWithoutWall(probe: string): Promise<Tried[]> {
  const attempts = everyAttempt.filter(
    ({ of, attempt }) => (attempt.withoutWall ?? of.withoutWall) === undefined,
  );
  const guard = [
    '--mount',
    '--uts',
    '--ipc',
    '--net',
    '--pid',
    '--cgroup',
    '--fork',
    '--kill-child',
    '--mount-proc',
  ];
  const script =
    'mount -t tmpfs none /mnt && cp "$0" /mnt/probe && mount -t tmpfs none /tmp && /mnt/probe "$@"; exit';
  const child = spawn(
    'unshare',
    [...guard, '--propagation', 'private', 'sh', '-c', script, probe, ...hostNamespaces()],
    {
      stdio: ['pipe', 'pipe', 'inherit'],
    },
  );
  child.stdin.end(linesOf(attempts, null));
  const parts: Buffer[] = [];
  for await (const part of child.stdout) parts.push(part);
  const outcomes = readOutcomes(Buffer.concat(parts).toString());
  return attempts.map((one, n) => ({ ...one, outcome: outcomes.get(n) ?? NOT_TRIED }));
}

const HOLDS: Readonly<Record<Expected, readonly Outcome['what'][]>> = {
  held: ['refused', 'killed', 'absent'],
  own: ['open', 'reached', 'absent'],
  told: ['open', 'reached', 'absent'],
  works: ['open'],
  open: ['open', 'reached', 'refused', 'killed', 'absent'],
};

/** Attempts that did not end as the documents say, each as one line. */
export function surprises(tried: readonly Tried[], setting: Setting): string[] {
  return tried.flatMap(({ of, attempt, outcome }) => {
    const expected = expectedOf(of, attempt, setting);
    const { what, why } = outcome;
    return HOLDS[expected].includes(what)
      ? []
      : [`${of.title}: ${attempt.what}: ${what} (${why}), not ${expected}`];
  });
}

let made = 0;

function newName(): Pick<Offer, 'NAME' | 'KEY'> {
  made += 1;
  const number = (process.pid % 100_000) * 8 + made;
  return { NAME: `attempt-${process.pid}-${made}`, KEY: String(0x5b00_0000 + number) };
}

/** On the host, through a command that runs it, such as `setpriv`; it ends with `stop`. */
export async function offerHere(probe: string, wrapper: readonly string[] = []) {
  const named = newName();
  const [program = '', ...rest] = [...wrapper, probe, '--serve', named.NAME, named.KEY];
  const child: ChildProcess = spawn(program, rest, { stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = once(child, 'exit');
  if (child.stdout === null) throw new Error('no output');
  const said = await Promise.race([once(createInterface(child.stdout), 'line'), ended]);
  const [PID = '', PORT = ''] = String(said[0]).split(' ');
  if (PORT === '') throw new Error(`nothing is offered: ${program} ended with ${said[0]}`);
  const stop = async () => {
    child.stdin?.end();
    await ended;
  };
  return { offer: { ...named, PID, PORT }, stop };
}

/** Inside a sandbox, where it stays until the sandbox ends. */
export async function offerInside(session: SandboxSession, probe: string): Promise<Offer> {
  const named = newName();
  const served = await session.spawn(spawnSpec([probe, '--serve', named.NAME, named.KEY], { input: '' }));
  let said = '';
  for await (const chunk of served.output) {
    if ('data' in chunk) said += chunk.data.toString();
    if (said.includes('\n')) break;
  }
  const [, PORT = ''] = said.trim().split(' ');
  if (PORT === '') throw new Error(`nothing is offered inside: ${said}`);
  return { ...named, PID: pidOf(named.NAME), PORT };
}

/** The process on the host whose command line has this name. */
function pidOf(name: string): string {
  const found = globSync('/proc/[0-9]*/cmdline').find((path) => {
    try {
      return readFileSync(path, 'latin1').includes(`--serve\0${name}\0`);
    } catch {
      return false;
    }
  });
  const pid = found?.split('/')[2];
  if (pid === undefined) throw new Error(`no process is called ${name}`);
  return pid;
}
