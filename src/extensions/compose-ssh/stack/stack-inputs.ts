import { z } from 'zod';
import { BooleanInput, NumberInput } from '../../../contract/profiles/inputs.ts';
import type { ProvisionSpec } from '../../../core/ports/extension.ts';
import { invalid } from '../remote/failure.ts';

const Names = z
  .union([z.string().transform((text) => text.split(',')), z.array(z.string())])
  .pipe(z.array(z.string().min(1).max(1024)).max(64));

/** Path of a file or directory of the tree. */
const Place = z.string().min(1).max(1024);

/** Inputs of a request about the stack, besides the trees it ships. */
export const StackInputs = z.object({
  /** Compose files, as paths of the tree. */
  compose_files: Names.default([]),
  /** A compose file of the tree, or its directory. */
  compose_bundle: Place.optional(),
  compose_bundle_ref: Place.optional(),
  /** A compose file as text: for stacks that need no repository. */
  compose: z.string().max(262_144).optional(),
  env: z
    .record(
      z
        .string()
        .regex(/^[A-Za-z_]\w*$/)
        .max(256),
      z.union([z.string(), z.number(), z.boolean()]).transform(String),
    )
    .default({}),
  profiles: Names.default([]),
  /** Services whose health is a condition of `ready`. */
  wait_for: Names.default([]),
  wait_seconds: NumberInput.pipe(z.number().positive().max(3600)).default(120),
  /** Service of programs and files. */
  service: z.string().max(64).optional(),
  /** Whether images that were built for it stay on the host. */
  keep_images: BooleanInput.default(false),
  /** Whether images that the host pulled for it are removed with it, unless they are in use. */
  remove_pulled: BooleanInput.default(false),
});
export type StackInputs = z.infer<typeof StackInputs>;

const TREES = ['workspace', 'repo', 'files', 'compose_bundle'] as const;

export interface RequestedStack extends StackInputs {
  readonly trees: (typeof TREES)[number][];
  /** Path in the tree of the compose file or its directory, and the input that named it. */
  readonly bundle: { readonly place: string; readonly field: string } | null;
}

function bundleOf({ compose_bundle, compose_bundle_ref }: StackInputs): RequestedStack['bundle'] {
  if (compose_bundle !== undefined) return { place: compose_bundle, field: 'inputs.compose_bundle' };
  if (compose_bundle_ref === undefined) return null;
  return { place: compose_bundle_ref, field: 'inputs.compose_bundle_ref' };
}

export function readStackInputs({ recipe, inputs }: ProvisionSpec): RequestedStack {
  const parsed = StackInputs.safeParse(recipe.inputs);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const field = `inputs.${issue?.path.join('.') ?? ''}`;
    throw invalid(field, `${field}: ${issue?.message ?? 'It is not valid.'}`, 'Correct this input.');
  }
  const trees = TREES.filter((name) => inputs.list.some((tree) => tree.name === name));
  if (trees.length === 0 && parsed.data.compose === undefined) {
    throw invalid(
      'inputs.repo',
      'A compose sandbox needs a stack.',
      'Give a repository (repo, repo_ref), a bundle (compose_bundle_ref), or the compose file itself (compose).',
    );
  }
  return { ...parsed.data, trees, bundle: bundleOf(parsed.data) };
}
