/** Writes files that are complete or missing after a crash. Each is written by one caller at a time. */
import { renameSync, writeFileSync } from 'node:fs';
import { open, rename } from 'node:fs/promises';
import { dirname } from 'node:path';

const MODE = 0o600;

export function writeWhole(path: string, text: string): void {
  writeFileSync(`${path}.new`, text, { mode: MODE });
  renameSync(`${path}.new`, path);
}

/** Writes a file that survives a power cut, with its name, once this resolves. */
export async function writeLasting(path: string, text: string): Promise<void> {
  const file = await open(`${path}.new`, 'w', MODE);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(`${path}.new`, path);
  const directory = await open(dirname(path), 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
