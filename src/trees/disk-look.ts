import { lstatSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { hostPath, nameOfBytes } from '../archive/file-name.ts';
import type { Look } from '../archive/link-judge.ts';

/** Returns the kinds of paths below a directory of this machine, without following links. */
export function diskLook(top: string): Look {
  return (path) => {
    const place = hostPath(join(top, path));
    const stats = lstatSync(place, { throwIfNoEntry: false });
    if (stats === undefined) return null;
    if (stats.isDirectory()) return 'directory';
    return stats.isSymbolicLink()
      ? { linkTo: nameOfBytes(readlinkSync(place, { encoding: 'buffer' })) }
      : 'file';
  };
}
