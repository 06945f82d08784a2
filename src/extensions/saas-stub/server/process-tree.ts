import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/** Selects processes: a match of any given field is enough. */
export interface TreeSelector {
  /** Prefix of a variable in the environment: daemons inherit it whatever their parent is. */
  readonly marker: string;
  /** Selects its descendants and its process group. */
  readonly leader?: number;
  /** Selects processes whose working directory is in here. */
  readonly directory?: string;
}

interface Seen {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
}

function attempt<Value>(read: () => Value): Value | null {
  try {
    return read();
  } catch {
    return null;
  }
}

/** Returns the living processes, without zombies. */
function livingProcesses(): Seen[] {
  const seen: Seen[] = [];
  for (const name of readdirSync('/proc')) {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === process.pid) continue;
    const stat = attempt(() => readFileSync(`/proc/${pid}/stat`, 'latin1'));
    const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ') ?? [];
    if (stat === null || fields[0] === 'Z' || fields[0] === 'X') continue;
    seen.push({ pid, parent: Number(fields[1]), group: Number(fields[2]) });
  }
  return seen;
}

function isInside(pid: number, directory: string): boolean {
  const cwd = attempt(() => readlinkSync(`/proc/${pid}/cwd`));
  return cwd !== null && (cwd === directory || cwd.startsWith(`${directory}/`));
}

function isMarked(pid: number, marker: string): boolean {
  const environment = attempt(() => readFileSync(`/proc/${pid}/environ`, 'latin1'));
  return environment?.split('\0').some((variable) => variable.startsWith(marker)) ?? false;
}

export function processesOf({ marker, leader, directory }: TreeSelector): number[] {
  const living = livingProcesses();
  const found = new Set<number>();
  for (const { pid, group } of living) {
    const led = leader !== undefined && (pid === leader || group === leader);
    if (led || isMarked(pid, marker) || (directory !== undefined && isInside(pid, directory))) found.add(pid);
  }
  for (let before = -1; before !== found.size; ) {
    before = found.size;
    for (const { pid, parent } of living) if (found.has(parent)) found.add(pid);
  }
  return [...found];
}

export function signalTree(selector: TreeSelector, signal: NodeJS.Signals): number {
  const pids = processesOf(selector);
  for (const pid of pids) attempt(() => process.kill(pid, signal));
  return pids.length;
}

/** Kills until no process is left: a process forked between two passes is found by the next. */
export async function eradicateTree(selector: TreeSelector): Promise<void> {
  for (let round = 0; round < 200; round += 1) {
    if (signalTree(selector, 'SIGKILL') === 0) return;
    await sleep(Math.min(5 + round, 50));
  }
  throw new Error(`Processes of ${selector.marker} do not die.`);
}
