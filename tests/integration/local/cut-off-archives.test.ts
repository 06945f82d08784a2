/** An archive that lacks its last bytes is refused, wherever it was cut: by the spawner, and by the agent inside. */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SpawnerClient } from '../../../src/extensions/local/engine/spawner-client.ts';
import type { Living } from '../../security/local-world.ts';
import { LocalWorld } from '../../security/local-world.ts';
import type { TarItem } from '../../support/image-archives.ts';
import { tarOf } from '../../support/image-archives.ts';

const BLOCK = 512;
const world = new LocalWorld({ warm: 0 });
const reason = await world.whyNot();

/** Each last: the cut falls into its header, its bytes, its padding, or the end of the archive. */
const COMMON: Record<string, TarItem> = {
  'a file': { name: 'file', body: 'x'.repeat(1300) },
  'an empty file': { name: 'empty', body: '' },
  'a directory': { name: 'directory/', type: '5' },
  'a directory with bytes': { name: 'directory/', type: '5', body: 'x'.repeat(700) },
  'a link': { name: 'link', type: '2', link: 'file' },
  'a link with bytes': { name: 'link', type: '2', link: 'file', body: 'x'.repeat(10) },
  'a long name': { name: 'x', body: 'y', pax: { path: `${'n'.repeat(200)}/file` } },
  'a global header': { name: 'global', type: 'g', body: '12 comment=x\n' },
};
/** Entries that the agent refuses in any archive. */
const SKIPPED: Record<string, TarItem> = {
  'a device': { name: 'device', type: '3', body: 'x'.repeat(600) },
  'an entry of an unknown type': { name: 'odd', type: 'Q', body: 'x'.repeat(600) },
  'a pipe': { name: 'pipe', type: '6' },
};

const archiveOf = (item: TarItem) => tarOf([{ name: 'first', body: 'first' }, item]);

/** Every block boundary, and places within each block. */
function cutsOf(archive: Buffer): number[] {
  const whole = archive.length - BLOCK;
  const cuts = Array.from({ length: Math.ceil(whole / BLOCK) }, (_, block) =>
    [0, 1, 255, 511].map((inside) => block * BLOCK + inside),
  );
  return cuts.flat().filter((at) => at < whole);
}

async function* bytes(data: Uint8Array): AsyncGenerator<Uint8Array> {
  if (data.length > 0) yield data;
}

describe.skipIf(reason !== null)(`a cut-off archive${reason === null ? '' : ` (${reason})`}`, () => {
  let living: Living;
  let spawner: SpawnerClient;
  let count = 0;

  beforeAll(async () => {
    living = await world.establish();
    spawner = await SpawnerClient.open(join(world.base, 'spawner.sock'), () => {});
    mkdirSync(join(world.base, 'layers', 'cut'));
  });
  afterAll(async () => {
    spawner.close();
    await world.close();
  });

  async function unpacked(archive: Buffer): Promise<string> {
    const name = `layers/cut/${count++}`;
    writeFileSync(join(world.base, `${name}.tar`), archive);
    const fields = { from: `${name}.tar`, to: name, entries: 100, bytes: 1 << 20, marks: 0 };
    return await spawner.call('unpack', fields).then(
      () => 'whole',
      (error: Error) => error.message,
    );
  }

  async function uploaded(archive: Buffer): Promise<string> {
    const { files } = living.session;
    if (files === undefined) throw new Error('no files');
    return await files.upload(`cut/${count++}`, bytes(archive)).then(
      () => 'whole',
      (error: { code?: string }) => String(error.code),
    );
  }

  for (const [name, item] of Object.entries({ ...COMMON, ...SKIPPED })) {
    it(`unpack: ${name} at the end: refused at every cut, whole with one block of zeros`, async () => {
      const archive = archiveOf(item);
      const taken: number[] = [];
      for (const cut of cutsOf(archive))
        if ((await unpacked(archive.subarray(0, cut))) !== 'Bad message') taken.push(cut);
      expect(taken).toEqual([]);
      expect(await unpacked(archive)).toBe('whole');
      expect(await unpacked(archive.subarray(0, -BLOCK))).toBe('whole');
    });
  }

  for (const [name, item] of Object.entries(COMMON)) {
    it(`upload: ${name} at the end: refused at every cut, whole with one block of zeros`, async () => {
      const archive = archiveOf(item);
      const taken: number[] = [];
      for (const cut of cutsOf(archive))
        if ((await uploaded(archive.subarray(0, cut))) !== 'SBX_PATH_REFUSED') taken.push(cut);
      expect(taken).toEqual([]);
      expect(await uploaded(archive)).toBe('whole');
      expect(await uploaded(archive.subarray(0, -BLOCK))).toBe('whole');
    });
  }

  it('unpack, upload: an extended header without its entry is refused', async () => {
    const extended = tarOf([{ name: 'x', body: '', pax: { path: 'other' } }]);
    const alone = Buffer.concat([extended.subarray(0, 2 * BLOCK), Buffer.alloc(2 * BLOCK)]);
    expect(await unpacked(alone)).toBe('Bad message');
    expect(await uploaded(alone)).toBe('SBX_PATH_REFUSED');
    expect(existsSync(join(world.base, 'layers', 'cut', 'other'))).toBe(false);
  });
});
