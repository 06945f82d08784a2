import { isUtf8 } from 'node:buffer';

/**
 * File names are bytes, and only mostly text. Here they are text in which a byte that belongs to no character stands as a lone
 * surrogate, U+DC80 to U+DCFF, which no text has of its own: nothing is lost on the way to bytes and back.
 */
const ESCAPED = 0xdc00;

function lengthOf(lead: number): number {
  if (lead < 0x80) return 1;
  if (lead < 0xe0) return 2;
  return lead < 0xf0 ? 3 : 4;
}

export function nameOfBytes(bytes: Buffer): string {
  if (isUtf8(bytes)) return bytes.toString('utf8');
  let name = '';
  for (let at = 0; at < bytes.length; ) {
    const lead = bytes[at] as number;
    const character = bytes.subarray(at, at + lengthOf(lead));
    if (isUtf8(character)) {
      name += character.toString('utf8');
      at += character.length;
    } else {
      name += String.fromCharCode(ESCAPED + lead);
      at += 1;
    }
  }
  return name;
}

export function bytesOfName(name: string): Buffer {
  if (name.isWellFormed()) return Buffer.from(name);
  const parts = [...name].map((character) => {
    const code = character.codePointAt(0) as number;
    const isByte = code >= ESCAPED + 0x80 && code <= ESCAPED + 0xff;
    return isByte ? Buffer.of(code - ESCAPED) : Buffer.from(character);
  });
  return Buffer.concat(parts);
}

/** Returns a path as the file system takes it. */
export function hostPath(path: string): string | Buffer {
  return path.isWellFormed() ? path : bytesOfName(path);
}
