import { z } from 'zod';
import { UploadId } from '../assets/upload.ts';
import { RequestedSecretRef } from './secret.ts';

/**
 * The source of a file tree, as an object. The same as text: `upload:upl_…`, `https://host/path.git#ref`,
 * `ssh://git@host/path.git#ref`.
 */
export const TreeSource = z
  .union([
    z.strictObject({ upload: UploadId }),
    z.strictObject({
      git: z.string().min(1).max(2048).describe('An https or ssh address.'),
      ref: z
        .string()
        .min(1)
        .max(255)
        .optional()
        .describe('A branch, tag or commit; what HEAD is when left out.'),
      credential: RequestedSecretRef.optional().describe('A password, a token, or a private key for ssh.'),
    }),
  ])
  .meta({ id: 'TreeSource' });
export type TreeSource = z.infer<typeof TreeSource>;

/** A directory of this machine inside a sandbox: for its administrator on the unix socket alone. */
export const Mount = z
  .strictObject({
    source: z.string().min(1).max(4096),
    target: z.string().min(1).max(4096),
    access: z.enum(['ro', 'rw']).default('ro'),
  })
  .meta({ id: 'Mount' });
export type Mount = z.infer<typeof Mount>;

export const Mounts = z.array(Mount).max(16);

const TRUTH: Readonly<Record<string, boolean>> = {
  true: true,
  yes: true,
  '1': true,
  false: false,
  no: false,
  '0': false,
};
const TRUTH_REMEDY = 'Write true or false.';

/** The one reader of true and false among inputs, which are text on the command line. Nothing else is understood. */
export const BooleanInput = z
  .union([z.boolean(), z.number(), z.string()], { error: TRUTH_REMEDY })
  .transform((value, context): boolean => {
    const word = String(value).toLowerCase();
    const truth = Object.hasOwn(TRUTH, word) ? TRUTH[word] : undefined;
    if (truth !== undefined) return truth;
    context.addIssue({ code: 'custom', message: TRUTH_REMEDY });
    return z.NEVER;
  });

/** A number, or its text. */
export const NumberInput = z.union(
  [
    z.number(),
    z
      .string()
      .regex(/^\d{1,15}(?:\.\d{1,6})?$/)
      .transform(Number),
  ],
  { error: 'Write a number.' },
);

/** The inputs that a backend takes: the name of each, and what it may hold. */
export type InputSchemas = Readonly<Record<string, z.ZodType>>;

/** Inputs that no backend declares, as all of them take these. */
export const CommonInputs = z.object({
  elevated: BooleanInput.optional(),
  warm: BooleanInput.optional().describe(
    '`false`: never a sandbox that was running before. A backend that starts none ahead has no other.',
  ),
});

export type CommonInputs = z.infer<typeof CommonInputs>;

/** An input of a sandbox, in the form in which it is shown. */
export const SandboxInput = z
  .strictObject({
    name: z.string(),
    upload_id: z.string(),
    digest: z.string(),
    source: z.enum(['upload', 'git', 'path']),
    git: z
      .strictObject({ url: z.string(), ref: z.string().nullable(), commit: z.string() })
      .nullable()
      .describe('The commit that the reference stood for when the sandbox was asked for.'),
  })
  .meta({ id: 'SandboxInput' });
