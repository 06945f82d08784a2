import { SandboxerError } from '../../src/contract/errors/errors.ts';
import type { Price } from '../../src/contract/money/money.ts';
import { Profile } from '../../src/contract/profiles/profile.ts';
import type { CatalogueProfile, ProfileCatalogue } from '../../src/core/ports/catalogue.ts';
import { digestOf } from '../../src/core/recipe/canonical-json.ts';

const common = {
  version: '1.0.0',
  isolation: { level: 'none' },
  network: { default: 'allow' },
} as const;

/** Soon, and with time so dear that it always pays. */
const HEDGED = { hedge: 'auto', hedge_after: 0.06, value_of_time: 1_000_000 } as const;

const PROFILES = [
  { ...common, id: 'profile.stub-plain', ttl: { default: 30, max: 90 } },
  { ...common, id: 'profile.stub-idle', ttl: { default: 40, max: 90, idle_reap: 10 } },
  {
    ...common,
    id: 'profile.stub-setup',
    ttl: { default: 30, max: 90 },
    setup: { run: ['true'] },
    route: HEDGED,
  },
  {
    ...common,
    id: 'profile.stub-checkpoint',
    ttl: { default: 30, max: 90, idle_reap: 15 },
    persistence: 'checkpoint',
  },
  {
    ...common,
    id: 'profile.stub-hedged',
    ttl: { default: 30, max: 90 },
    route: HEDGED,
  },
  {
    ...common,
    id: 'profile.stub-pinned',
    ttl: { default: 30, max: 90 },
    extension: 'ext.saas-stub#b',
    route: { fallback: ['ext.saas-stub#c', 'ext.saas-stub'] },
  },
  {
    ...common,
    id: 'profile.stub-lonely',
    ttl: { default: 25, max: 60 },
    route: { strategy: 'lowest-cost', allow_fallbacks: false },
  },
] as const;

/** Whose sandboxes leave a snapshot behind when their time comes. */
export const CHECKPOINT_PROFILE = 'profile.stub-checkpoint';

export const PROFILE_IDS: readonly string[] = PROFILES.map(({ id }) => id);

function build(): ProfileCatalogue {
  const entries = new Map<string, CatalogueProfile>();
  for (const input of PROFILES) {
    const profile = Profile.parse(input);
    entries.set(profile.id, { profile, source: 'simulation', fingerprint: digestOf(profile) });
  }
  return {
    version: 'simulation',
    issues: [],
    get(ref) {
      const found = entries.get(ref);
      if (found) return found;
      throw new SandboxerError('SBX_PROFILE_NOT_FOUND', `There is no profile "${ref}".`);
    },
    list: () => [...entries.values()],
  };
}

export const catalogue = build();

function price(version: string, over: Partial<Price>): Price {
  return {
    version,
    create_fee_micro_usd: 0,
    base_pico_usd_per_second: '0',
    vcpu_pico_usd_per_second: '0',
    gib_pico_usd_per_second: '0',
    gpu_pico_usd_per_second: '0',
    bills_when_paused: false,
    minimum_seconds: 0,
    ...over,
  };
}

/** What each backend charges at first, and after its price changed. pico-USD: a million of them per micro-USD. */
const PRICE_LISTS: Readonly<Record<string, readonly [Price, Price]>> = {
  'ext.saas-stub': [
    price('a', { vcpu_pico_usd_per_second: '1400000000', gib_pico_usd_per_second: '450000777' }),
    price('a2', {
      create_fee_micro_usd: 700,
      vcpu_pico_usd_per_second: '2800000011',
      gib_pico_usd_per_second: '450000777',
    }),
  ],
  'ext.saas-stub#b': [
    price('b', {
      create_fee_micro_usd: 5_000,
      base_pico_usd_per_second: '2100000013',
      minimum_seconds: 10,
    }),
    price('b2', { base_pico_usd_per_second: '1000000003', minimum_seconds: 3 }),
  ],
  'ext.saas-stub#c': [
    price('c', { base_pico_usd_per_second: '900000001', bills_when_paused: true }),
    price('c2', { base_pico_usd_per_second: '1900000007', bills_when_paused: true }),
  ],
};

export function priceOf(extensionId: string, isChanged: boolean): Price {
  const list = PRICE_LISTS[extensionId];
  if (list === undefined) throw new Error(`no price for ${extensionId}`);
  return list[isChanged ? 1 : 0];
}

export function priceNamed(version: string): Price {
  const found = Object.values(PRICE_LISTS)
    .flat()
    .find((one) => one.version === version);
  if (found === undefined) throw new Error(`no price ${version}`);
  return found;
}
