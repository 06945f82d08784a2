import type { CapabilityVector } from '../../src/contract/extensions/capability.ts';
import { HealthBook } from '../../src/core/health/health-book.ts';
import type { ExtensionHeader } from '../../src/core/ports/extension.ts';
import { decide } from '../../src/core/routing/routing.ts';
import { CAPABILITIES, DEFAULT_PRICE } from '../../src/extensions/saas-stub/config.ts';
import { sampleRouteInput } from '../../tests/support/route-samples.ts';
import type { Benchmark } from '../harness.ts';
import { measure, summarize } from '../harness.ts';

const CANDIDATES = 50;

/** Candidates: every tenth cannot meet the request, the others differ in price, speed and success. */
function headers(): ExtensionHeader[] {
  return Array.from({ length: CANDIDATES }, (_, n) => ({
    id: `ext.saas-stub#n${n}`,
    title: 'one of many',
    handleVersion: 1,
    provisionTimeoutSeconds: 60,
    capabilities: {
      ...CAPABILITIES,
      demo: false,
      isolation: n % 10 === 0 ? ['none'] : ['container'],
    } satisfies CapabilityVector,
    price: { ...DEFAULT_PRICE, vcpu_pico_usd_per_second: String(10_000_000 + n * 100_000) },
  }));
}

function measuredHealth(extensions: readonly ExtensionHeader[]): HealthBook {
  const book = new HealthBook();
  for (const [n, { id }] of extensions.entries()) {
    for (let attempt = 0; attempt < 10; attempt += 1) {
      const key = {
        attemptId: `${id}-${attempt}`,
        extensionId: id,
        hostId: null,
        recipeClass: 'host/container',
      };
      book.started(key, attempt);
      const outcome = (n + attempt) % 7 === 0 ? 'backend' : 'ready';
      book.ended(key, book.judge(key.attemptId, id, outcome, attempt + 1), 100 + n * 10);
    }
  }
  return book;
}

export const benchmark: Benchmark = {
  name: 'route.decide',
  description: 'one decision among 50 candidates, with health and quotes (target p99 ≤ 1 ms)',
  async run(context) {
    const extensions = headers();
    const book = measuredHealth(extensions);
    const profile = { resources: { cpu: 2, memory_mb: 2048 } };
    const input = sampleRouteInput(profile, extensions);
    const { recipe } = input;
    let n = 0;
    const once = () => {
      n += 1;
      const standing = Object.fromEntries(
        extensions.map((header) => [header.id, book.standing(header, 'healthy', recipe, 100)]),
      );
      const plan = decide({ ...input, standing, healthAt: 100, seed: `seed-${n}` });
      if (plan.candidates.length !== CANDIDATES) throw new Error('a candidate is missing');
    };
    const samples = await measure(context.iterations(20_000), context.iterations(2_000), once);
    return [summarize({ name: 'route.decide', unit: 'ms', samples, details: { candidates: CANDIDATES } })];
  },
};
