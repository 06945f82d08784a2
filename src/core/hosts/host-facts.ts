/** Parses `key value` lines of a machine that need not be honest: bounded, printable, and the rest is dropped. */
export type HostFacts = ReadonlyMap<string, readonly string[]>;

const MAX_LINES = 500;
const MAX_LINE = 300;

export function readHostFacts(text: string): HostFacts {
  const facts = new Map<string, string[]>();
  for (const line of text.split('\n').slice(0, MAX_LINES)) {
    const match = /^([a-z_]{1,40}) ([ -~]+)$/.exec(line.slice(0, MAX_LINE));
    if (!match) continue;
    const [, key = '', value = ''] = match;
    facts.set(key, [...(facts.get(key) ?? []), value]);
  }
  return facts;
}

export function factText(facts: HostFacts, key: string): string | null {
  return facts.get(key)?.[0] ?? null;
}

export function factNumbers(facts: HostFacts, key: string): number[] {
  return (factText(facts, key) ?? '').split(' ').map(Number.parseFloat).filter(Number.isFinite);
}

/** The resources of a machine and their use; `null` where the machine does not report them. */
export interface HostFigures {
  readonly cpus: number | null;
  readonly load1: number | null;
  readonly memoryTotalMb: number | null;
  readonly memoryAvailableMb: number | null;
  readonly diskTotalMb: number | null;
  readonly diskFreeMb: number | null;
}

function megabytes(kilobytes: number | undefined): number | null {
  return kilobytes === undefined ? null : Math.floor(kilobytes / 1024);
}

export function hostFigures(facts: HostFacts): HostFigures {
  const [diskTotal, diskFree] = factNumbers(facts, 'disk_kb');
  return {
    cpus: factNumbers(facts, 'cpus')[0] ?? null,
    load1: factNumbers(facts, 'load')[0] ?? null,
    memoryTotalMb: megabytes(factNumbers(facts, 'memory_total_kb')[0]),
    memoryAvailableMb: megabytes(factNumbers(facts, 'memory_available_kb')[0]),
    diskTotalMb: megabytes(diskTotal),
    diskFreeMb: megabytes(diskFree),
  };
}

/** Returns the share of a machine that is busy now, 0 to 1: its processors or its memory, whichever is more. */
export function busyShare(figures: HostFigures): number {
  const { cpus, load1, memoryTotalMb, memoryAvailableMb } = figures;
  const processors = cpus === null || load1 === null || cpus <= 0 ? 0 : load1 / cpus;
  const memory =
    memoryTotalMb === null || memoryAvailableMb === null || memoryTotalMb <= 0
      ? 0
      : 1 - memoryAvailableMb / memoryTotalMb;
  return Math.min(1, Math.max(0, processors, memory));
}
