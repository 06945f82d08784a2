import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { appendFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { StubWorld, StubWorldState } from '../world/world.ts';
import type { WorldObject } from '../world/world-object.ts';

export interface SavedState {
  /** Marks the processes of this stub, also across its restarts. */
  readonly id: string;
  readonly world: StubWorldState;
}

type Rest = Omit<StubWorldState, 'objects' | 'ended'>;
type Line =
  | { readonly all: SavedState }
  | { readonly object: WorldObject }
  | { readonly gone: string; readonly billed_ms: number }
  | { readonly rest: Rest };

function replay(lines: readonly Line[]): SavedState | null {
  let id: string | null = null;
  let rest: Rest | null = null;
  const objects = new Map<string, WorldObject>();
  const ended = new Map<string, number>();
  for (const line of lines) {
    if ('all' in line) {
      const { objects: all, ended: past, ...others } = line.all.world;
      id = line.all.id;
      rest = others;
      for (const object of all) objects.set(object.name, object);
      for (const [name, ms] of past) ended.set(name, ms);
    } else if ('object' in line) {
      objects.set(line.object.name, line.object);
    } else if ('gone' in line) {
      objects.delete(line.gone);
      ended.set(line.gone, line.billed_ms);
    } else {
      rest = line.rest;
    }
  }
  if (id === null || rest === null) return null;
  return { id, world: { ...rest, objects: [...objects.values()], ended: [...ended] } };
}

/** Journal of the state as changes, so that a change costs the same however large the state is. */
export class StateJournal {
  readonly #path: string;
  #rest = '';
  #lines: string[] = [];
  #flushing: Promise<void> | null = null;

  constructor(directory: string) {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    this.#path = join(directory, 'state.jsonl');
  }

  /** Reads the state. A line that a crash cut off is ignored. */
  read(): SavedState | null {
    let text: string;
    try {
      text = readFileSync(this.#path, 'utf8');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
      throw error;
    }
    return replay(
      text
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line) as Line),
    );
  }

  /** Begins a new journal with the whole state in one line. */
  begin(id: string, world: StubWorld): void {
    const beside = `${this.#path}.new`;
    writeFileSync(beside, `${JSON.stringify({ all: { id, world: world.toState() } })}\n`, { mode: 0o600 });
    renameSync(beside, this.#path);
  }

  /** Resolves when the current state of these objects, and of the rest, is written. */
  async save(names: Iterable<string>, world: StubWorld): Promise<void> {
    for (const name of names) {
      const object = world.objectOf(name);
      const billed = world.finalBillOf(name);
      if (object !== null) this.#lines.push(JSON.stringify({ object }));
      else if (billed !== undefined) this.#lines.push(JSON.stringify({ gone: name, billed_ms: billed }));
    }
    const { objects: _objects, ended: _ended, ...others } = world.toState();
    const rest = JSON.stringify({ rest: others });
    if (rest !== this.#rest) this.#lines.push(rest);
    this.#rest = rest;
    while (this.#lines.length > 0 || this.#flushing !== null) {
      this.#flushing ??= this.#flush();
      await this.#flushing;
    }
  }

  async #flush(): Promise<void> {
    const text = `${this.#lines.join('\n')}\n`;
    this.#lines = [];
    try {
      await appendFile(this.#path, text);
    } finally {
      this.#flushing = null;
    }
  }
}
