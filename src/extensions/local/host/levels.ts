/** Levels above a container: their runtimes with the options, and whether they work on this machine. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import type { IsolationLevel } from '../../../contract/extensions/capability.ts';
import { levelServed } from '../../../core/routing/isolation-level.ts';
import type { Lack, TriedLevels } from '../../shared/isolation/tried-levels.ts';
import { findProgram } from './find-program.ts';

type Higher = Extract<IsolationLevel, 'gvisor' | 'microvm'>;

interface Row {
  readonly level: Higher;
  readonly programs: readonly string[];
  /** Options before `run`. A sandbox of such a level inherits no socket: its agent calls a socket that is mounted inside. */
  readonly flags: readonly string[];
  readonly absent: string;
  readonly broken: string;
}

const ROWS: readonly Row[] = [
  {
    level: 'gvisor',
    programs: ['runsc'],
    flags: [
      ...['--network=none', '--ignore-cgroups', '--host-uds=open'],
      // Writes inside reach the disk at once: snapshots are made of it.
      ...['--file-access=shared', '--overlay2=none'],
    ],
    absent: 'Install gVisor (the program runsc), a release of November 2023 or newer.',
    broken:
      'Install gVisor (the program runsc), a release of November 2023 or newer: the one of Debian 12 has no ls and no stat.',
  },
  {
    level: 'microvm',
    programs: ['krun', 'kata-runtime'],
    flags: [],
    absent: 'On a machine with /dev/kvm, install krun (crun with libkrun) or kata-runtime.',
    broken: 'Check /dev/kvm and the runtime by itself; a socket of this machine must be reachable inside.',
  },
];

export interface LevelRuntime {
  readonly name: string;
  readonly path: string;
  readonly version: string;
  readonly flags: readonly string[];
}

export type Levels = TriedLevels<LevelRuntime>;

/** Verdicts by the program's path, size and time of change: a verdict on another file is worth nothing. */
const Verdicts = z.record(
  z.string(),
  z.strictObject({ version: z.string(), failure: z.string().nullable() }),
);
type Verdict = z.infer<typeof Verdicts>[string];

const TRIED = 'ls -d / && stat / > /dev/null';
const TRY_MS = 15_000;

/** Runs a small program of this machine in the runtime, with only this machine's files to read. */
function tryIt(path: string, flags: readonly string[]): string | null {
  const place = mkdtempSync(join(tmpdir(), 'sandboxer-level-'));
  const config = {
    ociVersion: '1.0.2',
    process: {
      user: { uid: 0, gid: 0 },
      args: ['/bin/sh', '-c', TRIED],
      env: ['PATH=/usr/bin:/bin'],
      cwd: '/',
      noNewPrivileges: true,
    },
    root: { path: '/', readonly: true },
    mounts: [{ destination: '/proc', type: 'proc', source: 'proc' }],
    linux: { namespaces: ['pid', 'network', 'ipc', 'uts', 'mount'].map((type) => ({ type })) },
  };
  try {
    writeFileSync(join(place, 'config.json'), JSON.stringify(config));
    const root = `--root=${join(place, 'run')}`;
    const name = `try-${process.pid}`;
    // The machine's /dev/null must not be used: runsc changes the owner of its standard streams.
    const { status, stdout, stderr, error } = spawnSync(
      path,
      [root, ...flags, 'run', `--bundle=${place}`, name],
      { encoding: 'utf8', timeout: TRY_MS, stdio: 'pipe' },
    );
    if (status === 0 && stdout === '/\n') return null;
    return (stderr || error?.message || `it ended with ${status}`).trim().split('\n')[0]?.slice(0, 300) ?? '';
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
}

function readVerdicts(file: string): z.infer<typeof Verdicts> {
  try {
    return Verdicts.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch {
    return {};
  }
}

/** Returns the verdict. A trial runs once for each build of a program; its result is stored. */
function verdictOn(path: string, flags: readonly string[], directory: string): Verdict {
  const { size, mtimeMs } = statSync(path);
  const key = [path, size, mtimeMs, ...flags].join(' ');
  const file = join(directory, 'levels.json');
  const known = readVerdicts(file);
  if (known[key] !== undefined) return known[key];
  const version = /(\d\S*)/.exec(spawnSync(path, ['--version'], { encoding: 'utf8' }).stdout ?? '')?.[1];
  const verdict = { version: version ?? 'unknown', failure: tryIt(path, flags) };
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    writeFileSync(file, JSON.stringify({ ...known, [key]: verdict }), { mode: 0o600 });
  } catch {
    // The trial runs again next time.
  }
  return verdict;
}

/** Finds the levels. `untried`: offers every existing runtime whatever the trial's result; for tests of the rest. */
export function findLevels(
  directory: string,
  { root, untried }: { root: boolean; untried: boolean },
): Levels {
  const offered = new Map<IsolationLevel, LevelRuntime>();
  const lacking = new Map<IsolationLevel, Lack>();
  for (const { level, programs, flags, absent, broken } of ROWS) {
    const name = programs.find((program) => findProgram(program) !== null);
    const path = name === undefined ? null : findProgram(name);
    if (name === undefined || path === null) {
      lacking.set(level, { reason: `${programs.join(' or ')} is not here`, remedy: absent });
    } else if (!root) {
      lacking.set(level, { reason: `only root can start ${name} for it`, remedy: 'Run the server as root.' });
    } else {
      const { version, failure } = verdictOn(path, flags, directory);
      if (failure === null || untried) offered.set(level, { name, path, version, flags });
      else lacking.set(level, { reason: `${name} ${version} cannot run ls: ${failure}`, remedy: broken });
    }
  }
  return { offered, lacking };
}

/** Returns the weakest offered level that is as strong as the requested one. */
export function levelFor(asked: IsolationLevel, { offered }: Levels): IsolationLevel {
  return levelServed(asked, ['container', ...offered.keys()]) ?? asked;
}
