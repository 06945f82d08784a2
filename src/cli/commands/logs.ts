import type { Command } from 'commander';
import type { ExecChunk } from '../../client/frames.ts';
import type { SandboxerClient } from '../../client/sandboxer-client.ts';
import { wholeNumber } from '../args/numbers.ts';
import { CommandFailure } from '../command-failure.ts';
import { EXIT } from '../exit-code.ts';
import type { Invocation } from '../invocation.ts';
import { writeChunk } from '../terminal/write-output.ts';

interface Flags {
  readonly follow?: boolean;
  readonly from: number;
  readonly service?: string;
  readonly tail?: number;
}

/** What is kept comes at once; a silence of this length means that the rest is still to be written. */
const CAUGHT_UP_MS = 300;

async function latestProcess(client: SandboxerClient, id: string): Promise<string> {
  const processes = await client.processes.list(id);
  const [latest] = [...processes].sort((a, b) => Date.parse(b.started_at) - Date.parse(a.started_at));
  if (latest) return latest.process_id;
  throw new CommandFailure(`Nothing was started in the background of ${id}.`, {
    code: 'SBX_CLI_NO_PROCESS',
    remedy: `Start something: sandboxer exec -d ${id} -- <program>`,
    exitCode: EXIT.notFound,
  });
}

/** Ends when the output pauses, which is when everything kept has been sent. */
async function* untilSilence(chunks: AsyncIterable<ExecChunk>): AsyncGenerator<ExecChunk> {
  const iterator = chunks[Symbol.asyncIterator]();
  for (;;) {
    const silence = Promise.withResolvers<null>();
    const timer = setTimeout(() => silence.resolve(null), CAUGHT_UP_MS);
    const next = await Promise.race([iterator.next(), silence.promise]);
    clearTimeout(timer);
    if (next === null || next.done) return;
    yield next.value;
  }
}

export function define(command: Command, invocation: Invocation): void {
  command
    .argument('<id>', 'the sandbox')
    .argument('[process]', 'the process; the latest one when left out')
    .option('-f, --follow', 'go on until the process ends')
    .option('--from <offset>', 'skip so many bytes of output', wholeNumber, 0)
    .option('--service <name>', 'what this service wrote, where a sandbox is made of services')
    .option('--tail <lines>', 'of a service: so many lines from the end', wholeNumber)
    .action(async (id: string, process: string | undefined, flags: Flags) => {
      const client = await invocation.client();
      if (flags.service !== undefined && process === undefined) {
        const { service, tail, follow } = flags;
        const log = client.processes.logs(id, { service, tail, follow });
        for await (const chunk of log) await writeChunk(chunk, invocation.printer);
        return;
      }
      const processId = process ?? (await latestProcess(client, id));
      const handle = client.processes.attach(id, processId, { from: flags.from });
      const chunks = flags.follow ? handle : untilSilence(handle);
      for await (const chunk of chunks) await writeChunk(chunk, invocation.printer);
      handle.detach();
    });
}
