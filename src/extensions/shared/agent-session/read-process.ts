import type { ProcessInfo } from '../../../contract/sandboxes/exec.ts';
import { exitStatus } from './exit-status.ts';
import type { PayloadReader } from './payload.ts';
import { ProtocolViolation } from './protocol-violation.ts';

const RUNNING = 1;
const TERMINAL = 2;
const BACKGROUND = 4;
const TIMED_OUT = 8;
const INPUT_OPEN = 16;
/** Flag: the frame has the state of the input and the time of the end, which agents of an earlier version do not send. */
const TELLS_END = 32;
const MAX_TIME_MS = 8.64e15;

export function readProcess(reader: PayloadReader): ProcessInfo {
  const id = reader.string(64);
  reader.u32(); // its pid inside
  const flags = reader.u8();
  const startedAt = reader.u64();
  const code = reader.i32();
  const signal = reader.u8();
  const count = reader.u32();
  if (count > 4096 || startedAt > MAX_TIME_MS) throw new ProtocolViolation('a process cannot be');
  const command = Array.from({ length: count }, () => reader.string(4096));
  const endedAt = (flags & TELLS_END) === 0 ? 0 : reader.u64();
  if (endedAt > MAX_TIME_MS) throw new ProtocolViolation('a process cannot be');
  const running = (flags & RUNNING) !== 0;
  return {
    process_id: id,
    command,
    started_at: new Date(startedAt).toISOString(),
    running,
    exit: running ? null : exitStatus(code, signal, (flags & TIMED_OUT) !== 0, false),
    tty: (flags & TERMINAL) !== 0,
    background: (flags & BACKGROUND) !== 0,
    ...((flags & TELLS_END) !== 0 && { stdin_open: (flags & INPUT_OPEN) !== 0 }),
    ...(endedAt > 0 && { ended_at: new Date(endedAt).toISOString() }),
  };
}
