/** No sandbox fills the disk of the machine: tried on a small one, mounted in a namespace of its own. */
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { SmallDisk } from '../../support/small-disk.ts';

const disk = new SmallDisk();
const reason = disk.whyNot();
const CHILD = join(import.meta.dirname, 'disk-room-child.ts');
const LIMIT_MS = 300_000;
const ended = { outcome: 'SBX_DISK_FULL', failed: true, failure: 'SBX_DISK_FULL', freed: true };

afterAll(() => disk.remove());

describe.skipIf(reason !== null)(`the disk of the machine${reason === null ? '' : ` (${reason})`}`, () => {
  it(
    'a sandbox that writes more than the default limit is ended with a reason, and its neighbour is not',
    () => {
      const found = disk.json(CHILD, 100, 'kept');
      expect(found).toMatchObject({ reason: null, quietBegins: 'exit 0', limit: 100 * 1_048_576 });
      expect(found.sentence).toHaveLength(1);
      for (const how of ['file', 'nameless', 'empty']) expect(found[how], how).toEqual(ended);
      expect(found.quietEnds).toBe('exit 0');
      expect(found.taken).toEqual({ outcome: 'SBX_DISK_FULL' });
      // A persistent sandbox starts again from its disk.
      expect(found.kept).toEqual({ outcome: 'SBX_DISK_FULL', again: true, cleared: 'exit 0' });
    },
    LIMIT_MS,
  );

  it(
    'a sandbox that fills the disk below every limit is ended before the disk is full, and its neighbour is not',
    () => {
      const found = disk.json(CHILD, 100_000);
      for (const how of ['file', 'nameless', 'empty']) expect(found[how], how).toEqual(ended);
      expect(found.quietEnds).toBe('exit 0');
    },
    LIMIT_MS,
  );
});
