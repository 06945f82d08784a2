import { z } from 'zod';
import { boundedList } from '../values/bounded.ts';
import { DurationSeconds } from '../values/duration.ts';
import { EnvVars } from '../values/json.ts';

const NoNul = (text: string) => !text.includes('\0');
const Argument = z.string().max(131_072).refine(NoNul, 'An argument cannot hold a NUL byte.');

/** The most arguments that an agent takes. The kernel limits their bytes: it refuses with 126. */
const MOST_ARGUMENTS = 32_768;

export const Signal = z.enum([
  'SIGHUP',
  'SIGINT',
  'SIGQUIT',
  'SIGKILL',
  'SIGUSR1',
  'SIGUSR2',
  'SIGTERM',
  'SIGCONT',
  'SIGSTOP',
  'SIGWINCH',
]);
export type Signal = z.infer<typeof Signal>;

export const TerminalSize = z.strictObject({
  cols: z.number().int().min(1).max(1000),
  rows: z.number().int().min(1).max(1000),
});
export type TerminalSize = z.infer<typeof TerminalSize>;

/** The name of one of the services that a sandbox is made of. */
export const ServiceName = z
  .string()
  .max(64)
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/, 'A service has letters, digits, ".", "_" and "-".');

export const ExecRequest = z
  .strictObject({
    command: z
      .union([
        boundedList(
          z.array(Argument).min(1).max(MOST_ARGUMENTS, `A program gets at most ${MOST_ARGUMENTS} arguments.`),
          MOST_ARGUMENTS,
        ).refine((argv) => argv[0] !== '', 'The program has no name.'),
        Argument.min(1).describe('Run by `/bin/sh -c`.'),
      ])
      .describe('A program and its arguments, or one shell command.'),
    env: EnvVars.default({}),
    cwd: z.string().max(4096).refine(NoNul).optional(),
    user: z
      .string()
      .max(129)
      .regex(
        /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,63})?$/,
        'A user is a name or a number, with ":" and a group if it is not its own.',
      )
      .optional()
      .describe('By name or number, `user[:group]`; with a group it has no others.'),
    service: ServiceName.optional().describe(
      'Where a sandbox is made of services: in this one instead of its default.',
    ),
    stdin: z
      .string()
      .max(8_388_608)
      .optional()
      .describe(
        'Written to the program’s input, which then ends unless it is kept open. Interactive input goes over WebSocket.',
      ),
    stdin_encoding: z.enum(['utf8', 'base64']).default('utf8'),
    stdin_open: z
      .boolean()
      .optional()
      .describe(
        'Keep its input open for `POST …/processes/{process_id}/stdin`, until that ends it. Left out: only where it runs in the background with a terminal. Without it, and without `stdin`, the program reads end-of-file.',
      ),
    timeout: DurationSeconds.optional().describe('Kills the whole process tree.'),
    tty: TerminalSize.optional(),
    background: z.boolean().default(false).describe('Answer at once; reconnect to the output later.'),
  })
  .meta({ id: 'ExecRequest' });
export type ExecRequest = z.infer<typeof ExecRequest>;
export type ExecInput = z.input<typeof ExecRequest>;

export const ExitStatus = z
  .strictObject({
    code: z
      .number()
      .int()
      .describe('The program’s own; 128 + n when a signal ended it; 126 and 127 as a shell has them.'),
    signal: z.string().nullable(),
    timed_out: z.boolean(),
    out_of_memory: z.boolean(),
  })
  .meta({ id: 'ExitStatus' });
export type ExitStatus = z.infer<typeof ExitStatus>;

/** The answer to a request without a stream. Output beyond the limit is cut, and marked as cut. */
export const ExecResult = z
  .strictObject({
    process_id: z.string(),
    exit: ExitStatus,
    stdout: z.string(),
    stderr: z.string(),
    encoding: z.enum(['utf8', 'base64']).describe('base64 when the output is not valid UTF-8.'),
    stdout_truncated: z.boolean(),
    stderr_truncated: z.boolean(),
    duration_ms: z.number(),
  })
  .meta({ id: 'ExecResult' });
export type ExecResult = z.infer<typeof ExecResult>;

export const ProcessInfo = z
  .strictObject({
    process_id: z.string(),
    command: z.array(z.string()),
    started_at: z.string(),
    running: z.boolean(),
    exit: ExitStatus.nullable(),
    tty: z.boolean(),
    background: z
      .boolean()
      .optional()
      .describe('Whether the program keeps running when no client is attached.'),
    stdin_open: z
      .boolean()
      .optional()
      .describe('Whether it can be written to. Left out where the backend does not say, as the next field.'),
    ended_at: z.string().optional(),
  })
  .meta({ id: 'ProcessInfo' });
export type ProcessInfo = z.infer<typeof ProcessInfo>;

/**
 * A line of an exec stream (NDJSON, or the `data` of a server-sent event). `offset` counts the bytes of all output before this
 * chunk: reconnect with `from=<offset + length>`.
 */
export const ExecStreamItem = z
  .discriminatedUnion('type', [
    z.strictObject({ type: z.literal('started'), process_id: z.string() }),
    z.strictObject({
      type: z.enum(['stdout', 'stderr', 'terminal']),
      offset: z.number().int(),
      data: z.string(),
      encoding: z.enum(['utf8', 'base64']),
    }),
    z.strictObject({ type: z.literal('gap'), offset: z.number().int(), missing: z.number().int() }),
    z.strictObject({ type: z.literal('exit'), exit: ExitStatus, duration_ms: z.number() }),
    z.strictObject({ type: z.literal('error'), problem: z.record(z.string(), z.unknown()) }),
  ])
  .meta({ id: 'ExecStreamItem' });
export type ExecStreamItem = z.infer<typeof ExecStreamItem>;

export const SignalRequest = z
  .strictObject({ signal: Signal.default('SIGTERM') })
  .meta({ id: 'SignalRequest' });
export const ResizeRequest = TerminalSize.meta({ id: 'ResizeRequest' });

/**
 * The binary form of the same stream (`application/vnd.sandboxer.frames`): one type byte, a big-endian u32 length, the
 * payload. Output payloads are raw bytes; the others are the JSON of the matching stream item.
 */
export const FRAME_TYPE = {
  started: 0,
  stdout: 1,
  stderr: 2,
  terminal: 3,
  gap: 4,
  exit: 5,
  error: 6,
  stdin: 16,
  stdinEnd: 17,
  resize: 18,
  signal: 19,
} as const;
export const FRAMES_MEDIA_TYPE = 'application/vnd.sandboxer.frames';
