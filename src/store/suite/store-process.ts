import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { SandboxerError } from '../../contract/errors/errors.ts';
import { SqliteStore } from '../sqlite/sqlite-store.ts';
import { sampleEvent, sampleSandbox } from './sample-records.ts';

/** A second process with a store, for what one process cannot show: the lock, and a kill without notice. */
export interface StoreProcess {
  /** The next line that it prints. */
  line(): Promise<string>;
  /** Resolves with all further lines, once the process is gone. */
  rest(): Promise<readonly string[]>;
  kill(): void;
  readonly exited: Promise<void>;
}

type Task = 'open' | 'write';

export function startStoreProcess(path: string, task: Task): StoreProcess {
  const file = fileURLToPath(import.meta.url);
  const child = spawn(process.execPath, [file, path, task], { stdio: ['ignore', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    async line() {
      const { value, done } = await lines.next();
      return done ? 'the process has ended' : value;
    },
    async rest() {
      const rest: string[] = [];
      for await (const line of { [Symbol.asyncIterator]: () => lines }) rest.push(line);
      return rest;
    },
    kill: () => void child.kill('SIGKILL'),
    exited: new Promise((resolve) => child.once('exit', () => resolve())),
  };
}

async function main(path: string, task: Task): Promise<void> {
  try {
    const store = await SqliteStore.open({ path });
    if (task === 'write') await writeForEver(store);
    process.stdout.write('open\n');
    setInterval(() => {}, 1000);
  } catch (error) {
    process.stdout.write(`${error instanceof SandboxerError ? error.code : error}\n`);
  }
}

/** Prints how many transactions are committed. Several run at a time, so that they share commits. */
async function writeForEver(store: SqliteStore): Promise<void> {
  let committed = 0;
  let next = 0;
  const one = async () => {
    for (;;) {
      const uid = `s${next++}`;
      await store.transaction('t', async (tx) => {
        await tx.sandboxes.insert(sampleSandbox({ uid }));
        await tx.events.append([sampleEvent(uid)]);
      });
      committed += 1;
      process.stdout.write(`${committed}\n`);
    }
  };
  await Promise.all([one(), one(), one(), one(), one()]);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await main(process.argv[2] as string, process.argv[3] as Task);
}
