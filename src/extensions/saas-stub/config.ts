import { z } from 'zod';
import type { CapabilityVector } from '../../contract/extensions/capability.ts';
import { Price } from '../../contract/money/money.ts';
import type { ExtensionServices } from '../../core/ports/extension.ts';
import { digestOf } from '../../core/recipe/canonical-json.ts';
import type { StubTransport } from './wire/transport.ts';

const StubInstance = z.strictObject({
  url: z.string().max(2048).describe('Where the stub listens: http://127.0.0.1:port, or unix:/path/of.sock.'),
  key_file: z.string().optional().describe('File with the bearer key of the stub.'),
  price: Price.partial()
    .optional()
    .describe(
      'The price of this instance; fields left out keep the default. It offers the GPUs that `gpus` names.',
    ),
});

export const StubConfig = z.record(z.string().regex(/^[a-z0-9-]{1,32}$/), StubInstance);

export type Instance = z.output<typeof StubInstance> & { readonly id: string };

/** Returns the instances of the configuration, and the one of the environment. */
export function instancesOf(
  config: z.output<typeof StubConfig>,
  { env }: Pick<ExtensionServices, 'env'>,
): Instance[] {
  const named = env.SANDBOXER_STUB_URL ? { ...config, default: { url: env.SANDBOXER_STUB_URL } } : config;
  return Object.entries(named).map(([name, instance]) => ({
    ...instance,
    id: name === 'default' ? 'ext.saas-stub' : `ext.saas-stub#${name}`,
  }));
}

export interface SaasStubOptions {
  /** Id of the instance; several may run side by side: `ext.saas-stub#b`. */
  readonly id?: string;
  readonly transport: StubTransport;
  readonly price?: Price | null;
  readonly capabilities?: Partial<CapabilityVector>;
  readonly provisionTimeoutSeconds?: number;
  /** How long one teardown waits for the object to go before it reports what remains. */
  readonly teardownWaitMs?: number;
  /** Objects for each page in `listOwned`. */
  readonly pageSize?: number;
}

export const DEFAULT_PRICE: Price = {
  version: 'saas-stub-1',
  create_fee_micro_usd: 0,
  base_pico_usd_per_second: '0',
  vcpu_pico_usd_per_second: '14000000',
  gib_pico_usd_per_second: '4500000',
  gpu_pico_usd_per_second: '0',
  bills_when_paused: false,
  minimum_seconds: 0,
};

/** A price of a configuration: missing fields are those of `DEFAULT_PRICE`. */
export type StubPrice = { readonly [Name in keyof Price]?: Price[Name] | undefined };

/** Returns the options of a stub with this price. It offers the GPUs that the price names; without a version, one is derived. */
export function pricedAs(given: StubPrice): Pick<SaasStubOptions, 'price' | 'capabilities'> {
  const price = { ...DEFAULT_PRICE, version: `saas-stub-${digestOf(given).slice(-8)}`, ...given } as Price;
  return { price, capabilities: { gpu: Object.keys(price.gpus ?? {}) } };
}

export const CAPABILITIES: CapabilityVector = {
  isolation: ['none'],
  egress: 'none',
  deny_all: false,
  open_network: true,
  credentials: ['env', 'file'],
  dead_man: 'extendable',
  snapshot: 'filesystem',
  snapshot_destructive: false,
  fork: true,
  pause: 'frozen',
  persistence: ['ephemeral', 'persistent', 'checkpoint'],
  exec: true,
  pty: false,
  background: true,
  files: true,
  watch: true,
  ports: true,
  ssh: false,
  resources: [],
  images: ['host', 'none'],
  regions: [],
  gpu: [],
  max_ttl_seconds: null,
  pricing: 'metered',
  latency_class: 'fast',
  hosting: 'saas',
  host_root: true,
  elevated: false,
  demo: true,
};

/** Capabilities without a byte stream to the stub, which leaves no access to the inside. */
export const WITHOUT_CHANNEL: Partial<CapabilityVector> = {
  background: false,
  files: false,
  watch: false,
  ports: false,
};
