/**
 * A program: the conformance suite on ext.local as whoever runs it. Takes the options of the extension, and with a level
 * also that one, on a root file system of busybox. Its report goes to stdout.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { IsolationLevel } from '../../src/contract/extensions/capability.ts';
import type { Recipe } from '../../src/core/recipe/recipe.ts';
import { createLocalExtension } from '../../src/extensions/local/create.ts';
import { hostCanary } from '../../src/extensions/local/host/host-canary.ts';
import type { LocalOptions } from '../../src/extensions/local/host/options.ts';
import { runConformance } from '../../src/testing/conformance.ts';
import { writeBusyboxTree } from '../support/busybox-tree.ts';

const options = JSON.parse(process.argv[2] ?? '') as LocalOptions;
const level = process.argv[3] as IsolationLevel | undefined;
const skip = JSON.parse(process.argv[4] ?? '{}') as Record<string, string>;
const { directory } = options;
const image = { imageId: 'img_busybox', digest: '', extensionId: 'ext.local' };

function busyboxArchive(): Buffer {
  const tree = mkdtempSync(join(tmpdir(), 'sbx-busybox-'));
  try {
    writeBusyboxTree(tree);
    return execFileSync('tar', ['-C', tree, '-c', '.'], { maxBuffer: 1 << 28 });
  } finally {
    rmSync(tree, { recursive: true });
  }
}

async function created() {
  const extension = createLocalExtension({ lingerMs: 100, ...options });
  const { header } = extension;
  if (level === undefined) return extension;
  async function* body() {
    yield busyboxArchive();
  }
  const clock = { now: () => Date.now(), sleep: async (ms: number) => void (await sleep(ms)) };
  const log = { debug() {}, info() {}, warn() {}, error() {} };
  const context = { signal: new AbortController().signal, clock, log, host: null };
  // Each owner has images of its own, and the suite has several owners.
  const provision = extension.provision.bind(extension);
  const imported = new Map<string, Promise<unknown>>();
  extension.provision = async (spec, ctx) => {
    const { owner } = spec.stamp;
    const keptImage = { ...image, imageId: `img_${owner}` };
    if (!imported.has(owner))
      imported.set(owner, extension.importImage({ ...keptImage, owner, maxBytes: 1 << 28 }, body(), context));
    await imported.get(owner);
    return await provision({ ...spec, recipe: { ...spec.recipe, keptImage } }, ctx);
  };
  if (!header.capabilities.isolation.includes(level)) throw new Error(`${level} is not offered`);
  return extension;
}

const recipe: Partial<Recipe> =
  level === undefined ? {} : { isolation: level, image: 'busybox', keptImage: image };

const report = await runConformance({
  async create() {
    return {
      extension: await created(),
      async cleanup() {
        for (let tries = 0; tries < 2_400 && existsSync(join(directory, 'spawner.sock')); tries++)
          await sleep(25);
      },
    };
  },
  recipe,
  skip,
  hostSnapshot: async () => hostCanary(directory),
});
process.stdout.write(JSON.stringify(report));
