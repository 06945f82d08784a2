import type { ExitStatus } from '../../../contract/sandboxes/exec.ts';
import { PayloadReader } from './payload.ts';
import { ProtocolViolation } from './protocol-violation.ts';
import { signalName } from './signal-numbers.ts';

const TIMED_OUT = 2;
const OUT_OF_MEMORY = 4;

export function exitStatus(
  code: number,
  signal: number,
  timedOut: boolean,
  outOfMemory: boolean,
): ExitStatus {
  if (code < 0 || code > 255 || signal > 64) throw new ProtocolViolation('an exit status cannot be');
  return {
    code,
    signal: signal === 0 ? null : signalName(signal),
    timed_out: timedOut,
    out_of_memory: outOfMemory,
  };
}

export function exitOf(payload: Buffer): ExitStatus {
  const reader = new PayloadReader(payload);
  const code = reader.i32();
  const signal = reader.u8();
  const flags = reader.u8();
  reader.end();
  return exitStatus(code, signal, (flags & TIMED_OUT) !== 0, (flags & OUT_OF_MEMORY) !== 0);
}
