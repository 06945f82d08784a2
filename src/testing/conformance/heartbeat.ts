import { setTimeout as sleep } from 'node:timers/promises';
import type { SandboxSession } from '../../core/ports/session.ts';
import { runShell } from './run-program.ts';

export interface Heartbeat {
  readonly file: string;
  /** Shell command of a process that leaves its parent, and its session where it can, and writes a byte ten times a second. */
  readonly daemon: string;
  /** The same loop, in the foreground. */
  readonly loop: string;
}

export function heartbeat(name: string): Heartbeat {
  const file = `beat-${name}`;
  const loop = `while :; do printf x >> ${file}; sleep 0.1 || sleep 1; done`;
  const detached = `S=; command -v setsid >/dev/null 2>&1 && S=setsid; ( $S /bin/sh -c '${loop}' </dev/null >/dev/null 2>&1 & )`;
  return { file, loop, daemon: detached };
}

async function beats(session: SandboxSession, { file }: Heartbeat): Promise<number> {
  return Number((await runShell(session, `wc -c < ${file} 2>/dev/null || echo 0`)).stdout.toString());
}

/** Tests a process that should have ended: it has when it is silent for a while. */
export async function stillBeats(session: SandboxSession, beat: Heartbeat): Promise<boolean> {
  await sleep(500);
  return await beatsWithin(session, beat, 1_500);
}

/** Tests a process that should go on: it does as soon as it writes, however slow the machine is. */
export async function beatsOn(session: SandboxSession, beat: Heartbeat): Promise<boolean> {
  return await beatsWithin(session, beat, 30_000);
}

async function beatsWithin(session: SandboxSession, beat: Heartbeat, withinMs: number): Promise<boolean> {
  const before = await beats(session, beat);
  for (const until = performance.now() + withinMs; performance.now() < until; await sleep(150))
    if ((await beats(session, beat)) > before) return true;
  return (await beats(session, beat)) > before;
}
