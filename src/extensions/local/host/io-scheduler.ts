/** Finds whether a disk shares its time by the weights of control groups: of the schedulers of Linux only bfq does. */
import { existsSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';

function nearestExisting(path: string): string {
  return existsSync(path) ? path : nearestExisting(dirname(path));
}

/** Returns the schedulers of a device. A partition is scheduled with its disk. */
function schedulersOf(device: number): string {
  const [major, minor] = [(device >> 8) & 0xfff, (device & 0xff) | ((device >> 12) & 0xfff00)];
  const place = realpathSync(`/sys/dev/block/${major}:${minor}`);
  const own = join(place, 'queue', 'scheduler');
  return readFileSync(existsSync(own) ? own : join(dirname(place), 'queue', 'scheduler'), 'utf8');
}

/** Returns `false` also for a file system without a device of its own, as btrfs. */
export function isWeighed(directory: string): boolean {
  try {
    return schedulersOf(statSync(nearestExisting(directory)).dev).includes('[bfq]');
  } catch {
    return false;
  }
}
