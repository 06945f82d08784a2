/** The server goes first: all sandboxes together weigh less than it, for processors and, where its scheduler weighs, for the disk. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { findHostFacts } from '../../../src/extensions/local/host/host-facts.ts';
import { SmallDisk } from '../../support/small-disk.ts';

const CHILD = join(import.meta.dirname, 'weights-child.ts');
const LIMIT_MS = 300_000;
const USUAL = { v1: 1024, v2: 100 } as const;
const usual = (version: unknown) => USUAL[version as keyof typeof USUAL];
const hasCpu = findHostFacts({ directory: '/nowhere' }).controllers.includes('cpu');

describe.each(['bfq', 'none'])('weights on a disk whose scheduler is %s', (scheduler) => {
  const disk = new SmallDisk(scheduler);
  const lacksIo = !existsSync('/sys/fs/cgroup/blkio') && !existsSync('/sys/fs/cgroup/cgroup.controllers');
  const reason = !hasCpu || lacksIo ? 'controllers are missing here' : disk.whyNot();
  afterAll(() => disk.remove());

  it.skipIf(reason !== null)(
    `sandboxes weigh less than the server, and an unweighable disk is reported${reason === null ? '' : ` (${reason})`}`,
    () => {
      const found = disk.json(CHILD);
      expect(found.works).toBe('1048576\n');
      expect(found.cpu).toBeLessThan(usual(found.version));
      if (scheduler === 'bfq') {
        expect(found.competes).toEqual([]);
        expect(found.io).toBe(50);
        expect(found.check).toMatch(/and for the disk$/);
      } else {
        expect(found.competes).toEqual([expect.stringContaining('for the disk')]);
        expect(found.io).toBeNull();
        expect(found.check).toMatch(/knows no weights \(bfq does\)$/);
      }
    },
    LIMIT_MS,
  );
});
