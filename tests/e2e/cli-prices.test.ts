/** Every part of a price, end to end over HTTP and the command, to the micro-dollar. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Quote } from '../../src/contract/money/money.ts';
import type { Sandbox } from '../../src/contract/sandboxes/sandbox.ts';
import { CliWorld } from './cli-world.ts';

const FEE = 250_000;
/** Micro-dollars a second. */
const MACHINE = 100;
const GPU = 400;
/** Ten minutes ahead with two of grace. */
const HELD_SECONDS = 720;
const MINIMUM_SECONDS = 120;
const QUANTUM_SECONDS = 3_600;

const pico = (microUsd: number) => `${microUsd}000000`;
const nothing = { vcpu_pico_usd_per_second: '0', gib_pico_usd_per_second: '0' };
const prices = {
  /** A fee, at least two minutes, and a GPU on top. */
  fee: {
    ...nothing,
    version: 'shown-1',
    create_fee_micro_usd: FEE,
    base_pico_usd_per_second: pico(MACHINE),
    gpus: { a100: pico(GPU) },
    minimum_seconds: MINIMUM_SECONDS,
  },
  /** By the hour. */
  hourly: {
    ...nothing,
    base_pico_usd_per_second: pico(MACHINE),
    quantum_ms: QUANTUM_SECONDS * 1_000,
  },
};

const profile = (name: string, over: object) => ({
  id: `profile.stub-${name}`,
  version: '1.0.0',
  isolation: { level: 'none' },
  network: { default: 'allow' },
  ttl: { default: '1h', max: '2h' },
  ...over,
});

interface Part {
  readonly name: string;
  readonly extension: string;
  readonly rate: number;
  readonly fee: number;
  /** What a life of an instant is billed. */
  readonly least: number;
  /** What is held at the create. */
  readonly held: number;
  /** What an hour costs. */
  readonly most: number;
}

const PARTS: readonly Part[] = [
  {
    name: 'machine',
    extension: 'ext.saas-stub#fee',
    rate: MACHINE,
    fee: FEE,
    least: MINIMUM_SECONDS * MACHINE,
    held: HELD_SECONDS * MACHINE,
    most: 3_600 * MACHINE,
  },
  {
    name: 'gpu',
    extension: 'ext.saas-stub#fee',
    rate: MACHINE + GPU,
    fee: FEE,
    least: MINIMUM_SECONDS * (MACHINE + GPU),
    held: HELD_SECONDS * (MACHINE + GPU),
    most: 3_600 * (MACHINE + GPU),
  },
  {
    name: 'hourly',
    extension: 'ext.saas-stub#hourly',
    rate: MACHINE,
    fee: 0,
    least: QUANTUM_SECONDS * MACHINE,
    held: QUANTUM_SECONDS * MACHINE,
    most: QUANTUM_SECONDS * MACHINE,
  },
];

let world: CliWorld;
beforeAll(async () => {
  world = await CliWorld.open({ stubs: { fee: { price: prices.fee }, hourly: { price: prices.hourly } } });
  await world.json(['credits', 'grant', '100']);
  const profiles = [
    profile('machine', { extension: 'ext.saas-stub#fee' }),
    profile('gpu', { extension: 'ext.saas-stub#fee', resources: { gpu: 'a100' } }),
    profile('hourly', { extension: 'ext.saas-stub#hourly' }),
    profile('other-gpu', { extension: 'ext.saas-stub#fee', resources: { gpu: 'h100' } }),
  ];
  for (const document of profiles)
    await world.json(['profiles', 'push', '-'], { input: JSON.stringify(document) });
});
afterAll(() => world.close());

interface Money {
  readonly available_micro_usd: number;
  readonly held_micro_usd: number;
  readonly spent_micro_usd: number;
}
const balance = () => world.json<Money>(['credits', 'balance']);

describe('a price by configuration', () => {
  it.each(PARTS)('$name: estimate, hold, bill and export agree', async ({ name, extension, ...part }) => {
    const { rate, fee, least, held, most } = part;
    const before = await balance();
    const estimate = await world.json<{
      plan: { candidates: { quote: Quote }[] };
      max_charge_micro_usd: number;
    }>(['estimate', '-p', `stub-${name}`]);
    expect(estimate.max_charge_micro_usd).toBe(fee + most);
    expect(estimate.plan.candidates.find(({ quote }) => quote.extension === extension)?.quote).toMatchObject({
      create_fee_micro_usd: fee,
      pico_usd_per_second: pico(rate),
      max_charge_micro_usd: fee + most,
    });
    const { sandbox_id } = await world.json<Sandbox>(['create', '-p', `stub-${name}`, '--id', name]);
    expect(await balance()).toMatchObject({
      available_micro_usd: before.available_micro_usd - fee - held,
      held_micro_usd: fee + held,
    });
    await world.json(['destroy', sandbox_id]);
    expect(await balance()).toEqual({
      ...before,
      available_micro_usd: before.available_micro_usd - fee - least,
      spent_micro_usd: before.spent_micro_usd + fee + least,
    });
    const usage = await world.json<{ items: { charged_micro_usd: number }[] }>(['usage', sandbox_id]);
    expect(usage.items).toMatchObject([{ extension, charged_micro_usd: fee + least }]);
    const exported = await world.run(['credits', 'export', '--format', 'focus']);
    const billed = exported.stdout.split('\n').filter((row) => row.includes(`profile.stub-${name},`));
    // The first column is the cost in dollars, to the millionth.
    const microUsd = billed.map((row) => Number(row.slice(0, row.indexOf(',')).replace('.', '')));
    expect(microUsd.reduce((sum, amount) => sum + amount, 0)).toBe(fee + least);
  });

  it('a GPU that the price does not name is not there', async () => {
    const refused = await world.run(['create', '-p', 'stub-other-gpu']);
    expect(refused.stderr).toContain('has no h100');
  });

  it('the books are in order', async () => {
    const { findings } = await world.json<{ findings: unknown[] }>(['credits', 'audit']);
    expect(findings).toEqual([]);
  });
});
