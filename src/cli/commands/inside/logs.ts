import type { Command } from 'commander';
import type { SandboxerClient } from '../../../client/sandboxer-client.ts';
import type { ExecChunk } from '../../../client/streams/frames.ts';
import { SandboxerApiError } from '../../../client/transport/api-error.ts';
import { wholeNumber } from '../../args/numbers.ts';
import { CommandFailure } from '../../failures/command-failure.ts';
import { EXIT } from '../../failures/exit-code.ts';
import type { Invocation } from '../../invocation/invocation.ts';
import { hasSetup, printSetup } from '../../output/setup-view.ts';
import { writeChunk } from '../../terminal/write-output.ts';

interface Flags {
  readonly follow?: boolean;
  readonly from: number;
  readonly service?: string;
  readonly tail?: number;
  readonly setup?: boolean;
}

/** Silence after which the output counts as caught up: kept output comes at once, and only new output comes later. */
const CAUGHT_UP_MS = 300;

async function latestProcess(client: SandboxerClient, id: string): Promise<string | null> {
  const processes = await client.processes.list(id);
  const [latest] = [...processes].sort((a, b) => Date.parse(b.started_at) - Date.parse(a.started_at));
  return latest?.process_id ?? null;
}

/** Prints the output of setup; without any, throws `otherwise`. */
async function showSetup(
  { printer }: Invocation,
  client: SandboxerClient,
  id: string,
  otherwise: unknown,
): Promise<void> {
  const log = await client.sandboxes.setup(id);
  if (!hasSetup(log)) throw otherwise;
  printSetup(printer, log);
}

function nothingThere(message: string, remedy: string): CommandFailure {
  return new CommandFailure(message, { code: 'SBX_CLI_NO_PROCESS', remedy, exitCode: EXIT.notFound });
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

interface ShownProcess {
  readonly id: string;
  readonly processId: string;
  readonly flags: Flags;
}

async function showProcess(
  { printer }: Invocation,
  client: SandboxerClient,
  { id, processId, flags }: ShownProcess,
): Promise<void> {
  const handle = client.processes.attach(id, processId, { from: flags.from });
  const chunks = flags.follow ? handle : untilSilence(handle);
  for await (const chunk of chunks) await writeChunk(chunk, printer);
  handle.detach();
}

/** Prints the output of the latest process; without one, or where the sandbox cannot be asked, that of setup. */
async function showLatest(
  invocation: Invocation,
  client: SandboxerClient,
  id: string,
  flags: Flags,
): Promise<void> {
  let latest: string | null;
  try {
    latest = await latestProcess(client, id);
  } catch (error) {
    if (!(error instanceof SandboxerApiError) || error.status === 404) throw error;
    return showSetup(invocation, client, id, error);
  }
  if (latest !== null) return showProcess(invocation, client, { id, processId: latest, flags });
  const remedy = `Start something: sandboxer exec -d ${id} -- <program>`;
  const nothing = nothingThere(`Nothing was started in the background of ${id}.`, remedy);
  return showSetup(invocation, client, id, nothing);
}

export function define(command: Command, invocation: Invocation): void {
  command
    .argument('<id>', 'the sandbox')
    .argument('[process]', 'the process; the latest one when left out')
    .option('-f, --follow', 'go on until the process ends')
    .option('--from <offset>', 'skip so many bytes of output', wholeNumber, 0)
    .option('--service <name>', 'output of this service, where a sandbox is made of services')
    .option('--setup', 'instructions and output of the setup commands, also of a failed sandbox')
    .option('--tail <lines>', 'of a service: so many lines from the end', wholeNumber)
    .action(async (id: string, process: string | undefined, flags: Flags) => {
      const client = await invocation.client();
      if (flags.setup) {
        const remedy = 'Give its profile commands to run: setup.run.';
        const nothing = nothingThere(`There was nothing to set up in ${id}.`, remedy);
        return showSetup(invocation, client, id, nothing);
      }
      if (flags.service !== undefined && process === undefined) {
        const { service, tail, follow } = flags;
        const log = client.processes.logs(id, { service, tail, follow });
        for await (const chunk of log) await writeChunk(chunk, invocation.printer);
        return;
      }
      if (process !== undefined) return showProcess(invocation, client, { id, processId: process, flags });
      return showLatest(invocation, client, id, flags);
    });
}
