/** Reads from the headers of a 64-bit little-endian ELF file how the kernel loads it. */
import { readFileSync } from 'node:fs';

const PT = { load: 1, dynamic: 2, interpreter: 3, stack: 0x6474e551, relro: 0x6474e552 } as const;
const DT = { textrel: 22, bindNow: 24, flags: 30, flags1: 0x6ffffffb } as const;
const WRITE_AND_EXECUTE = 3;

export interface Elf {
  /** Loaded at an address that differs each time. */
  readonly movable: boolean;
  readonly interpreter: boolean;
  readonly relro: boolean;
  readonly bindNow: boolean;
  readonly textRelocations: boolean;
  /** The stack, or a segment, that can be written and executed. */
  readonly writableCode: boolean;
}

export function readElf(path: string): Elf {
  const file = readFileSync(path);
  if (file.toString('latin1', 0, 6) !== '\x7fELF\x02\x01')
    throw new Error(`${path} is no 64-bit little-endian ELF`);
  const at = Number(file.readBigUInt64LE(32));
  const size = file.readUInt16LE(54);
  const segments = Array.from({ length: file.readUInt16LE(56) }, (_, index) => {
    const start = at + index * size;
    return {
      type: file.readUInt32LE(start),
      flags: file.readUInt32LE(start + 4),
      offset: Number(file.readBigUInt64LE(start + 8)),
      bytes: Number(file.readBigUInt64LE(start + 32)),
    };
  });
  const of = (type: number) => segments.find((segment) => segment.type === type);
  const dynamic = new Map<number, number>();
  const table = of(PT.dynamic);
  for (let entry = table?.offset ?? 0; table && entry < table.offset + table.bytes; entry += 16)
    dynamic.set(Number(file.readBigUInt64LE(entry)), Number(file.readBigUInt64LE(entry + 8)));
  const executable = (flags: number) => (flags & WRITE_AND_EXECUTE) === WRITE_AND_EXECUTE;
  return {
    movable: file.readUInt16LE(16) === 3,
    interpreter: of(PT.interpreter) !== undefined,
    relro: of(PT.relro) !== undefined,
    bindNow:
      dynamic.has(DT.bindNow) ||
      ((dynamic.get(DT.flags) ?? 0) & 8) !== 0 ||
      ((dynamic.get(DT.flags1) ?? 0) & 1) !== 0,
    textRelocations: dynamic.has(DT.textrel) || ((dynamic.get(DT.flags) ?? 0) & 4) !== 0,
    writableCode:
      of(PT.stack) === undefined ||
      segments.some(({ type, flags }) => (type === PT.load || type === PT.stack) && executable(flags)),
  };
}
