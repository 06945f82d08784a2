import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ABLE, sampleHeader, sampleRouteInput } from '../../../tests/support/route-samples.ts';
import type { CapabilityVector } from '../../contract/extensions/capability.ts';
import { HostSpec } from '../../contract/extensions/host.ts';
import type { Price } from '../../contract/money/money.ts';
import type { ProfileInput } from '../../contract/profiles/profile.ts';
import { unmeasured } from '../health/standing.ts';
import { UNPROBED } from '../hosts/host.ts';
import type { ExtensionHeader } from '../ports/extension.ts';
import { canonicalJson } from '../recipe/canonical-json.ts';
import type { RouteInput } from './routing.ts';
import { decide, rankedCandidates } from './routing.ts';

function price(microUsdPerSecond: number): Price {
  return {
    version: 'p1',
    create_fee_micro_usd: 0,
    base_pico_usd_per_second: String(microUsdPerSecond * 1_000_000),
    vcpu_pico_usd_per_second: '0',
    gib_pico_usd_per_second: '0',
    gpu_pico_usd_per_second: '0',
    bills_when_paused: false,
    minimum_seconds: 0,
  };
}

function backend(id: string, vector: Partial<CapabilityVector> = {}, cost = 10): ExtensionHeader {
  return sampleHeader(id, { capabilities: { ...ABLE, ...vector }, price: price(cost) });
}

/** Used to the full, so that a cost is its rate times its time. */
const BUSY = { expect: { cpu_utilisation: 1 } };

function plan(
  { route, ...profile }: Partial<ProfileInput>,
  extensions: ExtensionHeader[],
  changes: Partial<RouteInput> = {},
) {
  return decide(sampleRouteInput({ ...profile, route: { ...BUSY, ...route } }, extensions, changes));
}

const order = (made: ReturnType<typeof plan>) =>
  rankedCandidates(made).map((candidate) => candidate.extension);
const exclusions = (made: ReturnType<typeof plan>, id: string) =>
  made.candidates.find((candidate) => candidate.extension === id)?.excluded_by.map(({ code }) => code);

describe('routing', () => {
  const self = backend('ext.self', { hosting: 'self-hosted', latency_class: 'slow' }, 50);
  const cheap = backend('ext.cheap', {}, 1);
  const quick = backend('ext.quick', { latency_class: 'instant' }, 30);
  const all = [cheap, quick, self];

  it('routing puts any self-hosted backend that fits before any other', () => {
    expect(order(plan({}, all))).toEqual(['ext.self', 'ext.cheap', 'ext.quick']);
  });

  it('routing follows the strategy', () => {
    expect(order(plan({ route: { strategy: 'lowest-cost' } }, all))).toEqual([
      'ext.cheap',
      'ext.quick',
      'ext.self',
    ]);
    expect(order(plan({ route: { strategy: 'lowest-latency' } }, all))[0]).toBe('ext.quick');
  });

  it('routing follows order first, then the strategy, then the fallback as the tail', () => {
    const route = { order: ['ext.quick'], fallback: ['ext.self'] };
    expect(order(plan({ route }, all))).toEqual(['ext.quick', 'ext.cheap', 'ext.self']);
  });

  it('routing honours only and ignore', () => {
    expect(order(plan({ route: { only: ['ext.quick', 'ext.cheap'], ignore: ['ext.cheap'] } }, all))).toEqual([
      'ext.quick',
    ]);
  });

  it('routing allows a pinned backend and its fallback alone', () => {
    const made = plan({ extension: 'ext.quick', route: { fallback: ['ext.cheap'] } }, all);
    expect(order(made)).toEqual(['ext.quick', 'ext.cheap']);
    expect(exclusions(made, 'ext.self')).toEqual(['not_pinned']);
  });

  it('routing uses only the first choice when fallbacks are off, and says so', () => {
    const made = plan({ route: { allow_fallbacks: false } }, all);
    expect(order(made)).toEqual(['ext.self']);
    expect(exclusions(made, 'ext.cheap')).toEqual(['fallbacks_off']);
  });

  it('routing treats the account as a ceiling', () => {
    expect(order(plan({ route: { order: ['ext.self'] } }, all, { allowed: ['ext.cheap'] }))).toEqual([
      'ext.cheap',
    ]);
  });

  it('routing matches every instance of a base name', () => {
    expect(order(plan({ extension: 'ext.cheap' }, [backend('ext.cheap#b', {}, 2), cheap, quick]))).toEqual([
      'ext.cheap',
      'ext.cheap#b',
    ]);
  });

  it.each([
    ['isolation', { isolation: { level: 'microvm' } }, {}],
    ['network', {}, { deny_all: false }],
    ['network', { network: { default: 'allow' } }, { open_network: false }],
    ['egress', { network: { default: 'deny', egress: [{ host: 'example.org' }] } }, { egress: 'l3' }],
    ['egress', { requires: { egress: 'l7' } }, { egress: 'proxy-env' }],
    ['snapshot', { requires: { snapshot: 'memory' } }, {}],
    ['fork', { requires: { fork: true } }, { fork: false }],
    ['pause', { requires: { pause: true } }, { pause: 'none' }],
    ['persistence', { persistence: 'checkpoint' }, { persistence: ['ephemeral'] }],
    ['region', { requires: { region: 'us' } }, {}],
    ['resources', { resources: { memory_mb: 512 } }, { resources: [] }],
    ['image', { image: 'debian' }, { images: ['host'] }],
    ['max_ttl', {}, { max_ttl_seconds: 60 }],
    ['credentials', { setup: { secret_refs: [{ name: 'TOKEN' }] } }, { credentials: ['env'] }],
    ['demo_only', {}, { demo: true }],
  ] as [string, Partial<ProfileInput>, Partial<CapabilityVector>][])(
    'routing fails closed on %s',
    (code, profile, vector) => {
      const made = plan(profile, [backend('ext.x', vector)]);
      expect(order(made)).toEqual([]);
      expect(exclusions(made, 'ext.x')).toContain(code);
    },
  );

  it('routing judges a backend by the level that it would serve', () => {
    const levels = { gvisor: { resources: ['memory_mb' as const], memory_overrun: 'sandbox' as const } };
    const made = (profile: Partial<ProfileInput>) => plan(profile, [backend('ext.x', { levels })]);
    const gvisor = { isolation: { level: 'gvisor' as const } };
    const pids = { resources: { pids: 64 } };
    expect(order(made(pids))).toEqual(['ext.x']);
    expect(order(made(gvisor))).toEqual(['ext.x']);
    expect(exclusions(made({ ...gvisor, ...pids }), 'ext.x')).toEqual(['resources']);
    expect(exclusions(made({ ...pids, requires: { isolation: 'gvisor' } }), 'ext.x')).toEqual(['resources']);
    const requires = { memory_overrun: 'process' as const };
    expect(order(made({ requires }))).toEqual(['ext.x']);
    expect(exclusions(made({ ...gvisor, requires }), 'ext.x')).toEqual(['resources']);
  });

  it('routing leaves out backends that are unhealthy or absent', () => {
    const made = plan({}, all, {
      standing: {
        'ext.self': unmeasured('unhealthy', 'slow'),
        'ext.cheap': unmeasured('undetected', 'fast'),
      },
    });
    expect(order(made)).toEqual(['ext.quick']);
    expect(exclusions(made, 'ext.self')).toEqual(['unhealthy']);
  });

  it('routing keeps below the price ceiling', () => {
    const made = plan({ route: { constraints: { max_cost_per_hour: 0.05 } } }, all);
    expect(order(made)).toEqual(['ext.cheap']);
    expect(exclusions(made, 'ext.quick')).toEqual(['max_cost_per_hour']);
  });

  it('routing gives the same plan for the same input, whatever order the backends come in', () => {
    const anyOrder = fc.shuffledSubarray(all, { minLength: 3, maxLength: 3 });
    const reference = canonicalJson(plan({ route: { strategy: 'lowest-cost' } }, all));
    fc.assert(
      fc.property(
        anyOrder,
        (backends) => canonicalJson(plan({ route: { strategy: 'lowest-cost' } }, backends)) === reference,
      ),
    );
  });

  it('routing never ranks a backend better for a higher price', () => {
    const prices = fc.array(fc.integer({ min: 1, max: 1000 }), { minLength: 3, maxLength: 3 });
    const raise = fc.integer({ min: 1, max: 1000 });
    fc.assert(
      fc.property(
        prices,
        raise,
        fc.constantFrom('lowest-cost', 'prefer-self-hosted', 'lowest-latency'),
        ([a, b, c], more, strategy) => {
          const rank = (cost: number) =>
            order(
              plan({ route: { strategy } }, [
                backend('ext.a', {}, cost),
                backend('ext.b', {}, b),
                backend('ext.c', {}, c),
              ]),
            ).indexOf('ext.a');
          expect(rank((a as number) + more)).toBeGreaterThanOrEqual(rank(a as number));
        },
      ),
    );
  });

  it('routing leaves a host alone on which the backend keeps failing, unless it is asked for', () => {
    const ssh = { destination: 'h.example', host_keys: ['ssh-ed25519 AAAA'] };
    const hosts = ['bad', 'good'].map((id) => ({
      id,
      version: 1,
      source: 'api' as const,
      spec: HostSpec.parse({ id, ssh }),
      state: 'active' as const,
      health: UNPROBED,
      createdAt: 0,
    }));
    const ours = { ...backend('ext.ours', { hosting: 'self-hosted' }), runsOn: 'hosts' as const };
    const open = { ...unmeasured('healthy', 'fast'), breaker: 'open' as const };
    const changes = { hosts, standing: { 'ext.ours@bad': open } };
    const hostOf = (route: ProfileInput['route']) => plan({ route }, [ours], changes).candidates[0]?.host;
    expect(hostOf({})).toBe('good');
    expect(plan({}, [ours], changes).candidates[0]?.excluded_hosts).toMatchObject([
      { host: 'bad', code: 'breaker_open' },
    ]);
    expect(hostOf({ host: 'bad' })).toBe('bad');
    const all = { hosts, standing: { 'ext.ours@bad': open, 'ext.ours@good': open } };
    const [panicked] = plan({}, [ours], all).candidates;
    expect(panicked).toMatchObject({ rank: 0, host: expect.any(String) });
    expect(panicked?.excluded_hosts).toBeUndefined();
  });

  it('the machine of the server: no other host to a backend whose only host fails', () => {
    const ssh = { destination: 'h.example', host_keys: ['ssh-ed25519 AAAA'] };
    const row = {
      version: 1,
      source: 'api' as const,
      state: 'active' as const,
      health: UNPROBED,
      createdAt: 0,
    };
    const spec = HostSpec.parse({ id: 'only', ssh });
    const hosts = [
      { ...row, id: 'only', spec },
      { ...row, id: 'local', spec: { ...spec, ssh: null } },
    ];
    const ours = { ...backend('ext.ours', { hosting: 'self-hosted' }), runsOn: 'hosts' as const };
    const open = { ...unmeasured('healthy', 'fast'), breaker: 'open' as const };
    const known = { 'ext.ours@only': open, 'ext.ours': open };
    const [alone] = plan({}, [ours], { hosts, standing: known }).candidates;
    expect(alone).toMatchObject({ rank: 0, host: 'only', excluded_by: [] });
    // With another backend to choose, its breaker keeps it out for a while, and never for want of a host.
    const { candidates } = plan({}, [ours, backend('ext.b')], { hosts, standing: known });
    expect(candidates.find(({ extension }) => extension === 'ext.ours')).toMatchObject({
      host: 'only',
      excluded_by: [{ code: 'breaker_open', retry_after_seconds: expect.any(Number) }],
    });
  });
});
