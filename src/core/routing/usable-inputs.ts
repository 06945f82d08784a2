import type { ErrorIssue } from '../../contract/errors/errors.ts';
import { SandboxerError } from '../../contract/errors/errors.ts';
import { CommonInputs } from '../../contract/profiles/inputs.ts';
import type { Exclusion } from '../../contract/routing/route.ts';
import type { Json } from '../../contract/values/json.ts';
import type { ExtensionHeader } from '../ports/extension.ts';
import { nearestNames } from '../recipe/nearest-names.ts';
import type { Recipe } from '../recipe/recipe.ts';
import { TREE_INPUTS } from '../recipe/tree-input.ts';
import { matches } from './route-names.ts';

type Header = Pick<ExtensionHeader, 'id' | 'inputs'>;
type RecipeInputs = Pick<Recipe, 'inputs'>;

const TREES = TREE_INPUTS.flatMap((name) => [name, `${name}_ref`]);
const COMMON: readonly string[] = [...Object.keys(CommonInputs.shape), 'mounts', ...TREES];
const REMEDY = 'Correct this input, or leave it out.';

function takes({ inputs = {} }: Header, name: string): boolean {
  return Object.hasOwn(inputs, name) || (COMMON.includes(name) && !TREES.includes(name));
}

/** Returns what a backend that takes this input finds wrong with its value; `null` for a good one. */
function issueOf({ inputs = {} }: Header, name: string, value: Json): ErrorIssue | null {
  const parsed = Object.hasOwn(inputs, name) ? inputs[name]?.safeParse(value) : undefined;
  if (parsed === undefined || parsed.success) return null;
  const [issue] = parsed.error.issues;
  const field = ['inputs', name, ...(issue?.path ?? [])].map(String).join('.');
  return { field, problem: issue?.message ?? 'It is not valid.', remedy: REMEDY };
}

/** Returns the recipe's inputs that a backend does not take, as exclusions. */
export function inputMisfits(header: Header, { inputs }: RecipeInputs): Exclusion[] {
  return Object.entries(inputs).flatMap(([name, value]) => {
    if (!takes(header, name)) return [{ code: 'inputs' as const, detail: `takes no input ${name}` }];
    const issue = issueOf(header, name, value);
    return issue === null ? [] : [{ code: 'inputs' as const, detail: `${issue.field}: ${issue.problem}` }];
  });
}

function unknownInput(name: string, known: readonly string[]): ErrorIssue {
  const [near] = nearestNames(name, known, 1);
  const all = `Known here: ${[...known].sort().join(', ')}.`;
  return {
    field: `inputs.${name}`,
    problem: 'There is no such input.',
    remedy: near === undefined ? all : `Did you mean "${near}"? ${all}`,
  };
}

function notTree(name: string): ErrorIssue {
  return {
    field: `inputs.${name}`,
    problem: 'This is neither an upload nor a repository.',
    remedy: 'Name an upload (upload:upl_…) or a repository (https://host/path.git#branch).',
  };
}

/** Backends that may be chosen by their name alone. */
function nameable(headers: readonly Header[], recipe: Pick<Recipe, 'pinnedExtension' | 'route'>): Header[] {
  const { pinnedExtension: pinned, route } = recipe;
  if (pinned === null) return [...headers];
  return headers.filter(({ id }) => matches([pinned], id) || matches(route.fallback ?? [], id));
}

/**
 * Refuses inputs that no backend of the recipe takes, all in one error. What some of them take is left to routing, which
 * excludes the others. Where the pinned backend is not there, its own inputs are not known: those of all others pass.
 */
export function requireUsableInputs(
  headers: readonly Header[],
  recipe: Pick<Recipe, 'inputs' | 'pinnedExtension' | 'route'>,
): void {
  const pinned = nameable(headers, recipe);
  const candidates = pinned.length > 0 ? pinned : headers;
  const known = [...new Set([...COMMON, ...candidates.flatMap(({ inputs = {} }) => Object.keys(inputs))])];
  const issues = Object.entries(recipe.inputs).flatMap(([name, value]) => {
    const takers = candidates.filter((header) => takes(header, name));
    if (takers.length === 0 && TREES.includes(name)) return pinned.length > 0 ? [notTree(name)] : [];
    if (takers.length === 0) return [unknownInput(name, known)];
    const found = takers.map((header) => issueOf(header, name, value));
    return found.includes(null) ? [] : (found.slice(0, 1) as ErrorIssue[]);
  });
  const [first] = issues;
  if (first === undefined) return;
  throw new SandboxerError('SBX_INVALID_REQUEST', `${first.field}: ${first.problem}`, {
    field: first.field,
    creation: 'not_created',
    remedy: first.remedy ?? REMEDY,
    issues,
  });
}
