import { z } from 'zod';
import type { Json } from '../../contract/values/json.ts';
import { versionedHandle } from '../../core/ports/extension.ts';

const Data = z.strictObject({
  attemptId: z.string(),
  directory: z.string(),
  agent: z.string(),
  /** Variables of the recipe, for every program; they are no secrets. */
  variables: z.record(z.string(), z.string()),
  isolation: z.enum(['none', 'policy']),
  /** Whether a confined agent serves files. */
  files: z.boolean(),
  /** Directory of secrets on the host, and whether some of them belong into the environment. */
  secrets: z.strictObject({ directory: z.string(), environment: z.boolean() }).nullable(),
});

/** Upgrades version 1, which had no isolation, no files and no secrets. */
function upgrade(data: Json): Json {
  return { isolation: 'none', files: false, secrets: null, ...(data as { [key: string]: Json }) };
}

export const handles = versionedHandle(Data, 2, upgrade);
