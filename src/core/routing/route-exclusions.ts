import type { BackendStanding } from '../../contract/extensions/backend-standing.ts';
import type { Price, Quote } from '../../contract/money/money.ts';
import type { Exclusion, MaxPrice } from '../../contract/routing/route.ts';
import { sellsSize } from '../credits/pricing.ts';
import { unitPrices } from '../credits/unit-prices.ts';
import { regionMisfits, regionsOf } from '../hosts/regions.ts';
import type { ExtensionHeader } from '../ports/extension.ts';
import type { Recipe } from '../recipe/recipe.ts';
import { headerMisfits } from './header-misfits.ts';
import { matches } from './route-names.ts';
import type { RouteInput } from './routing.ts';
import { inputMisfits } from './usable-inputs.ts';

interface OfferTerms {
  readonly price: Price;
  readonly quote: Quote;
  readonly standing: BackendStanding;
}

/** Returns every reason why a backend is not a candidate, from the fixed vocabulary. Only the last two groups pass with time. */
export function exclusionsOf(
  input: RouteInput,
  header: ExtensionHeader,
  { price, quote, standing }: OfferTerms,
): Exclusion[] {
  return [
    ...policyExclusions(input, header.id),
    ...headerMisfits(header, input.recipe),
    ...regionExclusions(input, header),
    ...inputExclusions(input, header),
    ...priceExclusions(input, price, quote),
    ...probeExclusions(standing),
    ...keyExclusions(input, header.id, standing),
    ...breakerExclusions(standing),
  ];
}

/** Excludes a backend by its regions. For a backend on hosts, placement judges each host by its label. */
function regionExclusions({ recipe, hosts = [] }: RouteInput, header: ExtensionHeader): Exclusion[] {
  const regions = regionsOf(header, hosts);
  return regions === null ? [] : regionMisfits(recipe.requires, regions);
}

/**
 * The time after which a passing exclusion may be over: the next probe has looked, a refused key is tried again, or room was
 * made.
 */
export const PASSES_SECONDS = 60;

/** A request that pins a backend gets the backend's own, exact refusal. */
function inputExclusions({ recipe }: RouteInput, header: ExtensionHeader): Exclusion[] {
  const misfits = inputMisfits(header, recipe);
  const { needsInput } = header;
  if (needsInput === undefined || recipe.pinnedExtension !== null) return misfits;
  const given = new Set([...Object.keys(recipe.inputs), ...recipe.trees.map(({ name }) => name)]);
  if (needsInput.some((name) => given.has(name))) return misfits;
  return [...misfits, { code: 'inputs', detail: `needs one of the inputs ${needsInput.join(', ')}` }];
}

/** Whether an exclusion is ignored when every backend that fits looks broken: a guess about the near future, not a fact. */
export function isPassing({ code }: Exclusion): boolean {
  return code === 'breaker_open';
}

function policyExclusions(input: RouteInput, id: string): Exclusion[] {
  const { recipe, boundTo } = input;
  const { only, ignore, fallback = [] } = recipe.route;
  const excluded: Exclusion[] = [];
  if (boundTo !== null && id !== boundTo) {
    excluded.push({ code: 'not_pinned', detail: `the source lives on ${boundTo}` });
  }
  const elsewhere = recipe.volumes?.find(({ extensionId }) => extensionId !== null && extensionId !== id);
  if (elsewhere) {
    const detail = `the volume ${elsewhere.name} lies on ${elsewhere.extensionId}`;
    excluded.push({ code: 'volumes', detail });
  }
  if (recipe.keptImage && recipe.keptImage.extensionId !== id) {
    excluded.push({
      code: 'image',
      detail: `the image ${recipe.image} lies on ${recipe.keptImage.extensionId}`,
    });
  }
  const pinned = recipe.pinnedExtension;
  if (pinned !== null && !matches([pinned], id) && !matches(fallback, id)) {
    excluded.push({ code: 'not_pinned', detail: `the profile pins ${pinned}` });
  }
  const explicit = recipe.route.strategy === 'explicit' && pinned === null;
  if (explicit && !matches([...(recipe.route.order ?? []), ...fallback], id)) {
    excluded.push({
      code: 'not_pinned',
      detail: 'an explicit route names its backends in order and fallback',
    });
  }
  if (input.allowed !== null && !matches(input.allowed, id)) {
    excluded.push({ code: 'policy', detail: 'the workspace does not allow it' });
  }
  if (input.quoted !== null && !(id in input.quoted)) {
    excluded.push({ code: 'not_quoted', detail: 'the quote does not name it' });
  }
  if (only && !matches(only, id)) excluded.push({ code: 'not_in_only', detail: 'not in route.only' });
  if (ignore && matches(ignore, id)) excluded.push({ code: 'ignored', detail: 'in route.ignore' });
  return excluded;
}

function dollars(microUsd: number): string {
  return `$${(microUsd / 1_000_000).toFixed(4)}`;
}

function priceExclusions(input: RouteInput, price: Price, quote: Quote): Exclusion[] {
  const { constraints } = input.recipe.route;
  const excluded: Exclusion[] = [];
  const isSold = sellsSize(price, input.recipe.resources);
  if (!isSold) {
    excluded.push({ code: 'resources', detail: 'sells no size that is large enough' });
  }
  const hourly = constraints?.max_cost_per_hour ?? null;
  if (hourly !== null && quote.micro_usd_per_hour > hourly * 1_000_000) {
    excluded.push({
      code: 'max_cost_per_hour',
      detail: `costs ${dollars(quote.micro_usd_per_hour)} an hour, at most $${hourly} is allowed`,
    });
  }
  const total = constraints?.max_total_cost ?? null;
  if (total !== null && quote.max_charge_micro_usd > total * 1_000_000) {
    excluded.push({
      code: 'max_total_cost',
      detail: `may cost ${dollars(quote.max_charge_micro_usd)} in all, at most $${total} is allowed`,
    });
  }
  const ceilings = constraints?.max_price;
  if (ceilings && isSold) excluded.push(...overMaxPrice(ceilings, price, input.recipe));
  return excluded;
}

const UNIT_NAMES: readonly (readonly [keyof MaxPrice, string])[] = [
  ['vcpu_hour', 'a vCPU hour'],
  ['gib_hour', 'a GiB hour'],
  ['gpu_hour', 'a GPU hour'],
  ['create', 'a create'],
];

/** Compares what is really paid. A price that cannot be compared is over every ceiling. */
function overMaxPrice(ceilings: MaxPrice, price: Price, { resources, requires }: Recipe): Exclusion[] {
  const prices = unitPrices(price, resources, requires.region ?? null);
  return UNIT_NAMES.flatMap(([name, what]) => {
    const ceiling = ceilings[name];
    const unit = prices[name];
    if (ceiling === undefined || ('usd' in unit && unit.usd <= ceiling)) return [];
    const detail =
      'usd' in unit
        ? `${what} costs $${unit.usd.toFixed(4)}, at most $${ceiling} is allowed`
        : `the price of ${what} cannot be compared with $${ceiling}: ${unit.unknown}`;
    return [{ code: 'max_price' as const, detail }];
  });
}

function probeExclusions({ probe }: BackendStanding): Exclusion[] {
  if (probe === 'undetected') return [{ code: 'unavailable', detail: 'what it needs is not installed here' }];
  if (probe === 'unhealthy')
    return [{ code: 'unhealthy', detail: 'its last probe failed', retry_after_seconds: PASSES_SECONDS }];
  return [];
}

/** Judges each key by itself: a backend's refusal of one key says nothing of another. */
function keyExclusions({ keys }: RouteInput, id: string, { key_refused }: BackendStanding): Exclusion[] {
  const key = keys?.[id];
  if (!key) {
    const detail = 'it refused our key a moment ago';
    return key_refused ? [{ code: 'key_refused', detail, retry_after_seconds: PASSES_SECONDS }] : [];
  }
  if (key.usable) return [];
  const whose = key.scope === 'workspace' ? 'the workspace’s own key' : 'the platform’s key';
  return [{ code: 'key_refused', detail: `${whose} was refused or is turned off` }];
}

function breakerExclusions({ breaker }: BackendStanding): Exclusion[] {
  return breaker === 'open'
    ? [
        {
          code: 'breaker_open',
          detail: 'it failed several times in a row and is left alone for a while',
          retry_after_seconds: PASSES_SECONDS,
        },
      ]
    : [];
}
