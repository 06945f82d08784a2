export async function* bytesFrom(data: Uint8Array | string, chunkSize = 65_536): AsyncGenerator<Uint8Array> {
  const all = Buffer.from(data);
  for (let at = 0; at < all.length; at += chunkSize) yield all.subarray(at, at + chunkSize);
}

export async function bytesOf(source: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const part of source) parts.push(part);
  return Buffer.concat(parts);
}
