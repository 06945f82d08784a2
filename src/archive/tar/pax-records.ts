/**
 * Records of a pax extended header, `LENGTH KEY=VALUE\n` one after another (POSIX pax). Judged as strictly as the agent and the
 * spawner do: an archive means the same to every program that reads it.
 */
const LENGTH = /^\d{1,8}$/;
const SIZE = /^\d{1,16}$/;

/** Calls `take` for each record in its order; the last one of a key holds. Returns `false` where the header is damaged. */
export function eachPaxRecord(header: Buffer, take: (key: string, value: Buffer) => void): boolean {
  for (let at = 0; at < header.length; ) {
    const space = header.indexOf(0x20, at);
    const digits = space === -1 ? '' : header.toString('latin1', at, Math.min(space, at + 9));
    const end = at + (LENGTH.test(digits) ? Number(digits) : 0);
    if (end <= space + 1 || end > header.length || header[end - 1] !== 0x0a) return false;
    const record = header.subarray(space + 1, end - 1);
    const equals = record.indexOf(0x3d);
    if (equals === -1) return false;
    take(record.toString('latin1', 0, equals), record.subarray(equals + 1));
    at = end;
  }
  return true;
}

/** Returns the size that a pax record gives an entry; `NaN` for a value that is not a decimal number. */
export function paxSize(value: string): number {
  const size = SIZE.test(value) ? Number(value) : Number.NaN;
  return Number.isSafeInteger(size) ? size : Number.NaN;
}
