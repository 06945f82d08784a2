import { describe, expect, it } from 'vitest';
import { STORAGE_RANGE } from '../engine/uid-ranges.ts';
import { findHostFacts } from '../host/host-facts.ts';
import { bundleConfig } from './bundle.ts';
import type { OwnParts } from './bundle-parts.ts';
import { bundleParts } from './bundle-parts.ts';
import { BundleTexts } from './bundle-texts.ts';

const facts = { ...findHostFacts({ directory: '/nowhere' }), root: true };
const SECCOMP = { bpf: 'AAAA' };
const PLAIN: OwnParts = {
  range: 1_000_000,
  secretFiles: false,
  openFiles: null,
  process: { env: {}, user: null, cwd: null },
  noNewPrivs: false,
  mounts: [],
  volumes: [],
  place: '/state/local',
  calls: false,
};

const made = (own: OwnParts) => bundleConfig(bundleParts(own, facts, SECCOMP));

describe('the text of a bundle', () => {
  it('the text of a bundle is that of its own configuration, whichever was made before it', () => {
    const texts = new BundleTexts(facts);
    const variants: OwnParts[] = [
      PLAIN,
      { ...PLAIN, range: 2_000_000 },
      { ...PLAIN, range: STORAGE_RANGE },
      { ...PLAIN, secretFiles: true, range: 3_000_000 },
      { ...PLAIN, openFiles: 77 },
      { ...PLAIN, noNewPrivs: true },
      { ...PLAIN, volumes: [{ volumeId: 'v', path: '/data', readOnly: true }] },
      { ...PLAIN, calls: true },
      PLAIN,
    ];
    for (const own of variants) expect(JSON.parse(texts.of(own, SECCOMP))).toEqual(made(own));
  });

  it('the text of a bundle keeps the texts of an image, also where one looks like an id', () => {
    const texts = new BundleTexts(facts);
    const process = { ...PLAIN.process, env: { TRICK: `"hostID":${PLAIN.range}`, N: String(PLAIN.range) } };
    for (const range of [PLAIN.range, 4_000_000]) {
      const own = { ...PLAIN, process, range };
      expect(JSON.parse(texts.of(own, SECCOMP))).toEqual(made(own));
    }
  });

  it('the text of a bundle has the filter that is there by then', () => {
    const texts = new BundleTexts(facts);
    const before = JSON.parse(texts.of(PLAIN, { profile: { defaultAction: 'SCMP_ACT_ERRNO' } }));
    expect(before.linux.seccomp).toBeDefined();
    expect(JSON.parse(texts.of(PLAIN, SECCOMP)).linux.seccomp).toBeUndefined();
  });
});
