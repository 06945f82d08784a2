import { spawn } from 'node:child_process';
import { closeSync, openSync, writeFileSync } from 'node:fs';

export interface Ended {
  code: number | null;
  signal: NodeJS.Signals | null;
  seconds: number;
  /** Limit, where it ended the command. */
  stoppedAfterMs?: number;
  /** Reason why the command could not be started. */
  problem?: string;
}

interface RunOptions {
  /** File for the command's output; without it, the output goes to that of this process. */
  logFile?: string;
  environment?: Record<string, string>;
  /** Time after which its whole process group is ended. */
  limitMs?: number;
  /** Runs at the least priority: only idle processor time. */
  background?: boolean;
}

const MERCY_MS = 10_000;
const LEAST_NICE = 19;
const groups = new Set<number>();

/**
 * Runs a command. With a log, it has a process group of its own, so that a limit or an interrupt ends all of it; without one it
 * shares our group and the terminal.
 */
export async function runCommand(command: readonly string[], options: RunOptions = {}): Promise<Ended> {
  const { logFile, environment = {}, limitMs, background = false } = options;
  const log = logFile === undefined ? undefined : openSync(logFile, 'a');
  const [program = '', ...rest] = background ? ['nice', '-n', `${LEAST_NICE}`, ...command] : command;
  const startedAt = performance.now();
  const child = spawn(program, rest, {
    stdio: log === undefined ? 'inherit' : ['ignore', log, log],
    detached: log !== undefined,
    env: { ...process.env, ...environment },
  });
  if (log !== undefined) closeSync(log);
  if (log !== undefined && child.pid !== undefined) {
    groups.add(child.pid);
    if (background) giveWay(child.pid);
  }
  let stopped = false;
  let mercy: NodeJS.Timeout | undefined;
  const limit =
    limitMs === undefined
      ? undefined
      : setTimeout(() => {
          stopped = true;
          endGroup(child.pid, 'SIGTERM');
          mercy = setTimeout(() => endGroup(child.pid, 'SIGKILL'), MERCY_MS);
        }, limitMs);
  const ended = await new Promise<Omit<Ended, 'seconds'>>((resolve) => {
    child.once('error', (error) => resolve({ code: null, signal: null, problem: error.message }));
    child.once('exit', (code, signal) => resolve({ code, signal }));
  });
  clearTimeout(limit);
  clearTimeout(mercy);
  // Processes left by a killed command would disturb the next one.
  if (stopped) endGroup(child.pid, 'SIGKILL');
  if (child.pid !== undefined) groups.delete(child.pid);
  const seconds = (performance.now() - startedAt) / 1000;
  return stopped && limitMs !== undefined
    ? { ...ended, seconds, stoppedAfterMs: limitMs }
    : { ...ended, seconds };
}

/** Ends every command that has a process group of its own. */
export function endAllCommands(): void {
  for (const leader of groups) endGroup(leader, 'SIGKILL');
}

function endGroup(leader: number | undefined, signal: NodeJS.Signals): void {
  if (leader === undefined) return;
  try {
    process.kill(-leader, signal);
  } catch {
    // The process is gone.
  }
}

/**
 * Lowers the priority of the session: where the kernel shares time by session first, niceness has no effect on other sessions.
 */
function giveWay(leader: number): void {
  try {
    writeFileSync(`/proc/${leader}/autogroup`, `${LEAST_NICE}`);
  } catch {
    // The kernel is another one, or does not share by session.
  }
}
