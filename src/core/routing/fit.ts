import type { CapabilityVector, Requirements } from '../../contract/extensions/capability.ts';
import {
  EgressEnforcement,
  IsolationLevel,
  MemoryOverrun,
  SnapshotKind,
} from '../../contract/extensions/capability.ts';
import type { Exclusion, ExclusionCode } from '../../contract/routing/route.ts';
import type { Recipe } from '../recipe/recipe.ts';
import { capabilitiesAt } from './isolation-level.ts';

const ISOLATION = IsolationLevel.options;
const EGRESS = EgressEnforcement.options;
const SNAPSHOT = SnapshotKind.options;
const OVERRUN = MemoryOverrun.options;

function strongestIsolation(vector: CapabilityVector): number {
  return Math.max(...vector.isolation.map((level) => ISOLATION.indexOf(level)));
}

/** The weakest egress enforcement that makes this recipe's network policy true; `null` when it needs none. */
function neededEgress(recipe: Recipe): 'l3' | 'l7' | null {
  const { network } = recipe;
  if (network.default === 'allow' || network.egress.length === 0) return null;
  const fine = network.egress.some((rule) => rule.methods || rule.paths || rule.binaries || rule.credential);
  const named = network.egress.some((rule) => !/^[\d.]+$/.test(rule.host));
  return fine || named ? 'l7' : 'l3';
}

/** A condition, and the text for a failure: put into words only then. */
type Check = readonly [ExclusionCode, boolean, string | (() => string)];

function requirementChecks(requires: Requirements, vector: CapabilityVector): Check[] {
  return [
    [
      'isolation',
      requires.isolation === undefined || strongestIsolation(vector) >= ISOLATION.indexOf(requires.isolation),
      () => `needs ${requires.isolation} isolation, offers ${vector.isolation.join(', ')}`,
    ],
    [
      'egress',
      requires.egress === undefined || EGRESS.indexOf(vector.egress) >= EGRESS.indexOf(requires.egress),
      () => `needs ${requires.egress} egress enforcement, offers ${vector.egress}`,
    ],
    [
      'snapshot',
      requires.snapshot === undefined ||
        SNAPSHOT.indexOf(vector.snapshot) >= SNAPSHOT.indexOf(requires.snapshot),
      () => `needs ${requires.snapshot} snapshots, offers ${vector.snapshot}`,
    ],
    ['fork', !requires.fork || vector.fork, 'cannot fork'],
    ['pause', !requires.pause || vector.pause !== 'none', 'cannot pause'],
    ['pty', !requires.pty || vector.pty, 'has no terminal'],
    ['ports', !requires.ports || vector.ports, 'cannot reach ports inside'],
    ['watch', !requires.watch || vector.watch, 'cannot watch files'],
    ['ssh', !requires.ssh || vector.ssh, 'has no ssh'],
    ['dead_man', !requires.dead_man || vector.dead_man !== 'none', 'cannot bound its own life'],
    [
      'persistence',
      requires.persistence === undefined || vector.persistence.includes(requires.persistence),
      () => `needs ${requires.persistence}, offers ${vector.persistence.join(', ')}`,
    ],
    [
      'hosting',
      requires.hosting === undefined || vector.hosting === requires.hosting,
      () => `is ${vector.hosting}`,
    ],
    ['gpu', requires.gpu === undefined || vector.gpu.includes(requires.gpu), () => `has no ${requires.gpu}`],
    [
      'resources',
      (requires.resources ?? []).every((name) => vector.resources.includes(name)),
      () =>
        `does not enforce ${(requires.resources ?? []).filter((name) => !vector.resources.includes(name)).join(', ')}`,
    ],
    [
      'resources',
      requires.memory_overrun === undefined ||
        OVERRUN.indexOf(vector.memory_overrun ?? 'process') >= OVERRUN.indexOf(requires.memory_overrun),
      'ends as a whole when it needs more memory than it may have',
    ],
  ];
}

function imageFits({ image, keptImage }: Recipe, vector: CapabilityVector): boolean {
  if (image === 'host') return vector.images.includes('host') || vector.images.includes('none');
  return vector.images.includes(keptImage === undefined ? 'reference' : 'imported');
}

/** The needs that follow from the recipe alone. */
interface Needs {
  readonly egress: 'l3' | 'l7' | null;
  /** The resources that it names. */
  readonly asked: readonly string[];
  readonly deliveries: readonly Recipe['secretRefs'][number]['delivery'][];
}

/** The needs of a recipe are the same for every backend, so they are worked out once. */
const needs = new WeakMap<Recipe, Needs>();

function needsOf(recipe: Recipe): Needs {
  const known = needs.get(recipe);
  if (known) return known;
  const named = Object.entries(recipe.resources).filter(([name, value]) => value !== null && name !== 'gpu');
  const found = {
    egress: neededEgress(recipe),
    asked: named.map(([name]) => name),
    deliveries: [...new Set(recipe.secretRefs.map((ref) => ref.delivery))],
  };
  needs.set(recipe, found);
  return found;
}

function recipeChecks(recipe: Recipe, vector: CapabilityVector): Check[] {
  const { egress, asked, deliveries } = needsOf(recipe);
  const unenforced = asked.filter((name) => !(vector.resources as string[]).includes(name));
  const undeliverable = deliveries.filter((delivery) => !vector.credentials.includes(delivery));
  return [
    [
      'demo_only',
      !vector.demo || recipe.profileId.startsWith('profile.stub-'),
      'isolates nothing: only profile.stub-* may use it',
    ],
    [
      'isolation',
      strongestIsolation(vector) >= ISOLATION.indexOf(recipe.isolation),
      () => `needs ${recipe.isolation} isolation, offers ${vector.isolation.join(', ')}`,
    ],
    ['isolation', !recipe.noNewPrivs || vector.no_new_privs === true, 'cannot forbid new privileges'],
    ['network', recipe.network.default !== 'deny' || vector.deny_all, 'cannot deny the network'],
    ['network', recipe.network.default !== 'allow' || vector.open_network, 'has no open network'],
    [
      'egress',
      egress === null || EGRESS.indexOf(vector.egress) >= EGRESS.indexOf(egress),
      () => `the allowlist needs ${egress} enforcement, offers ${vector.egress}`,
    ],
    [
      'credentials',
      undeliverable.length === 0,
      () => `cannot deliver secrets by ${undeliverable.join(', ')}`,
    ],
    ['persistence', vector.persistence.includes(recipe.persistence), () => `is not ${recipe.persistence}`],
    ['resources', unenforced.length === 0, () => `does not enforce ${unenforced.join(', ')}`],
    [
      'gpu',
      recipe.resources.gpu === null || vector.gpu.includes(recipe.resources.gpu),
      () => `has no ${recipe.resources.gpu}`,
    ],
    [
      'image',
      imageFits(recipe, vector),
      () =>
        recipe.keptImage === undefined && vector.images.includes('imported')
          ? `has no image ${recipe.image}: import it with "sandboxer images import"`
          : `cannot use the image ${recipe.image}`,
    ],
    ['volumes', !recipe.volumes?.length || vector.volumes === true, 'has no volumes'],
    [
      'max_ttl',
      vector.max_ttl_seconds === null || recipe.ttlSeconds <= vector.max_ttl_seconds,
      () => `lives at most ${vector.max_ttl_seconds} s`,
    ],
    [
      'workspace',
      recipe.workspace.access !== 'ro' || vector.read_only_workspace === true,
      'cannot make the workspace read-only',
    ],
    ['mounts', (recipe.mounts ?? []).length === 0 || vector.mounts === true, 'mounts no directories'],
    ['elevated', !recipe.elevated || vector.elevated, 'knows no elevated inputs'],
  ];
}

/**
 * Returns every reason why this backend cannot truthfully give what the recipe asks, wherever it runs. Empty: it fits, but for
 * the region, which depends on the host (`regions.ts`).
 */
export function misfits(recipe: Recipe, declared: CapabilityVector): Exclusion[] {
  const vector = capabilitiesAt(declared, recipe.isolation);
  const failed: Exclusion[] = [];
  for (const [code, ok, says] of recipeChecks(recipe, vector)) if (!ok) failed.push(misfit(code, says));
  for (const [code, ok, says] of requirementChecks(recipe.requires, vector))
    if (!ok) failed.push(misfit(code, says));
  if (failed.length < 2) return failed;
  const seen = new Set<string>();
  return failed.filter(({ code, detail }) => !seen.has(code + detail) && seen.add(code + detail));
}

function misfit(code: ExclusionCode, says: string | (() => string)): Exclusion {
  return { code, detail: typeof says === 'string' ? says : says() };
}
