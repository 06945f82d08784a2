import type { ExitStatus } from '../../contract/sandboxes/exec.ts';
import type {
  OutputChunk,
  OutputGap,
  SandboxProcess,
  SandboxSession,
  SpawnSpec,
} from '../../core/ports/session.ts';

export interface ProgramResult {
  readonly exit: ExitStatus;
  readonly code: number;
  readonly stdout: Buffer;
  readonly stderr: Buffer;
  readonly chunks: readonly (OutputChunk | OutputGap)[];
}

export type ProgramOptions = Partial<Omit<SpawnSpec, 'argv' | 'stdin'>> & {
  readonly input?: Uint8Array | string;
};

export function spawnSpec(argv: readonly string[], options: ProgramOptions = {}): SpawnSpec {
  const { input, ...rest } = options;
  return {
    argv,
    env: {},
    cwd: null,
    user: null,
    timeoutSeconds: null,
    terminal: null,
    stdin: input !== undefined,
    background: false,
    ...rest,
  };
}

const INPUT_CHUNK = 65_536;

async function feed(process: SandboxProcess, input: Uint8Array): Promise<void> {
  for (let at = 0; at < input.length; at += INPUT_CHUNK)
    await process.write(input.subarray(at, at + INPUT_CHUNK));
  await process.endInput();
}

/** Reads a process to its end. */
export async function finish(process: SandboxProcess): Promise<ProgramResult> {
  const chunks: (OutputChunk | OutputGap)[] = [];
  for await (const chunk of process.output) chunks.push(chunk);
  const exit = await process.exit;
  const of = (stream: string) =>
    Buffer.concat(
      chunks.flatMap((chunk) => (chunk.stream === stream && 'data' in chunk ? [chunk.data] : [])),
    );
  return { exit, code: exit.code, stdout: of('stdout'), stderr: of('stderr'), chunks };
}

/** Runs a program to its end and keeps all its output. */
export async function runProgram(
  session: SandboxSession,
  argv: readonly string[],
  options: ProgramOptions = {},
): Promise<ProgramResult> {
  const process = await session.spawn(spawnSpec(argv, options));
  const fed = options.input === undefined ? Promise.resolve() : feed(process, Buffer.from(options.input));
  const [result] = await Promise.all([finish(process), fed.catch(() => {})]);
  return result;
}

export function shellArgv(script: string, ...args: string[]): string[] {
  return ['/bin/sh', '-c', script, 'sh', ...args];
}

export async function runShell(
  session: SandboxSession,
  script: string,
  options: ProgramOptions = {},
): Promise<ProgramResult> {
  return await runProgram(session, shellArgv(script), options);
}
