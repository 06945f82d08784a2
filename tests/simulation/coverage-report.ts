import { readFileSync, writeFileSync } from 'node:fs';
import { CRASH_POINTS, FAULTS } from './crash-plan.ts';

/**
 * Which cells must be visited. Two sources: rules that follow from the state table and from what each state asks of a
 * backend, and the cells that an exploration over other seeds found often enough that a full run cannot miss them.
 */

const FROZEN = new URL('./reachable.json', import.meta.url);
/** Seen this often in an exploration of 5,000 other seeds, a cell is all but certain to be seen in a full run. */
const OFTEN = 12;

const STATES = [
  ['-', 'none'],
  ['new', 'new'],
  ['provisioning', 'prov'],
  ['ready', 'ready'],
  ['active', 'activ'],
  ['paused', 'pausd'],
  ['expired', 'expir'],
  ['failed', 'faild'],
  ['destroying', 'destr'],
  ['destroyed', 'gone'],
] as const;

const MAKING = ['late_create', 'stuck_provisioning'];
const REMOVING = ['stuck_teardown', 'partial_teardown'];

/** Faults that a sandbox can meet while it is in a state: those of the requests that the state gives rise to. */
const FAULTS_IN: Readonly<Record<string, readonly string[]>> = {
  provisioning: FAULTS,
  ready: FAULTS.filter((fault) => !MAKING.includes(fault) && !REMOVING.includes(fault)),
  active: FAULTS.filter((fault) => !MAKING.includes(fault) && !REMOVING.includes(fault)),
  paused: FAULTS.filter((fault) => !MAKING.includes(fault) && !REMOVING.includes(fault)),
  destroying: FAULTS.filter((fault) => !MAKING.includes(fault)),
};

/** The state and the crash points of the steps that are taken in it. */
const STEPS_IN: Readonly<Record<string, readonly string[]>> = {
  provisioning: [
    'settle-provision',
    'settle-probe',
    'settle-teardown',
    'claim',
    'renew',
    'destroy',
    'recreate',
    'extend',
    'expire',
  ],
  ready: [
    'settle-pause',
    'settle-snapshot',
    'settle-extend',
    'pause',
    'snapshot',
    'extend',
    'touch',
    'expire',
    'destroy',
    'recreate',
    'tick',
    'fund',
    'funded',
  ],
  active: [
    'settle-pause',
    'settle-snapshot',
    'pause',
    'snapshot',
    'extend',
    'expire',
    'destroy',
    'recreate',
    'tick',
    'fund',
    'funded',
  ],
  paused: ['settle-resume', 'settle-snapshot', 'resume', 'extend', 'expire', 'destroy'],
  expired: ['claim'],
  failed: ['expire', 'recreate', 'destroy'],
  destroying: ['settle-teardown', 'claim', 'destroy'],
};

function pairsOf(cells: Iterable<string>, left: number, right: number): Set<string> {
  const pairs = new Set<string>();
  for (const cell of cells) {
    const parts = cell.split('|');
    pairs.add(`${parts[left]}|${parts[right]}`);
  }
  return pairs;
}

function ruled(cells: ReadonlyMap<string, number>): string[] {
  const points = new Set([...cells.keys()].map((cell) => cell.split('|')[2]));
  const missing = CRASH_POINTS.filter((point) => !points.has(point)).map((point) => `any|any|${point}`);
  const stateFault = pairsOf(cells.keys(), 0, 1);
  for (const [state, faults] of Object.entries(FAULTS_IN)) {
    for (const fault of faults)
      if (!stateFault.has(`${state}|${fault}`)) missing.push(`${state}|${fault}|any`);
  }
  const statePoint = pairsOf(cells.keys(), 0, 2);
  for (const [state, labels] of Object.entries(STEPS_IN)) {
    for (const label of labels)
      if (!statePoint.has(`${state}|tx:${label}:before`)) missing.push(`${state}|any|tx:${label}:before`);
  }
  return missing;
}

/** Reachable cells that a full run did not visit. */
export function unvisited(cells: ReadonlyMap<string, number>): string[] {
  const { cells: frozen } = JSON.parse(readFileSync(FROZEN, 'utf8')) as { cells: string[] };
  return [...ruled(cells), ...frozen.filter((cell) => !cells.has(cell))];
}

export function freeze(cells: ReadonlyMap<string, number>, seeds: string): void {
  const often = [...cells].filter(([, visits]) => visits >= OFTEN).map(([cell]) => cell);
  const about = `state|fault|crash point, visited at least ${OFTEN} times by seeds ${seeds}: run.ts --freeze renews it`;
  writeFileSync(FROZEN, `${JSON.stringify({ about, cells: often.sort() }, null, 2)}\n`);
}

/** Crash points down, states across; in each cell how many faults the sandbox had met there: before/after, sent/effected. */
export function printCoverage(cells: ReadonlyMap<string, number>): void {
  const faults = new Map<string, Set<string>>();
  for (const cell of cells.keys()) {
    const [state, fault, point] = cell.split('|') as [string, string, string];
    const key = `${state}|${point}`;
    faults.set(key, (faults.get(key) ?? new Set()).add(fault));
  }
  const count = (state: string, point: string) => faults.get(`${state}|${point}`)?.size ?? 0;
  const groups = new Map<string, string[]>();
  for (const point of CRASH_POINTS) {
    const group = point.replace(/:(before|after|sent|effected|taken)$/, '');
    groups.set(group, [...(groups.get(group) ?? []), point]);
  }
  console.log(
    `\nvisited: ${cells.size} cells of (state × fault × crash point); faults met per state and crash point:`,
  );
  console.log(`${''.padEnd(24)}${STATES.map(([, short]) => short.padStart(6)).join('')}`);
  for (const [group, points] of groups) {
    const row = STATES.map(([state]) => {
      const counts = points.map((point) => count(state, point));
      return (counts.every((n) => n === 0) ? '·' : counts.join('/')).padStart(6);
    });
    console.log(`${group.padEnd(24)}${row.join('')}`);
  }
}
