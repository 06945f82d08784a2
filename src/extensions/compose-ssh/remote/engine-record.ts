import { z } from 'zod';

export const ENGINE_WISHES = ['auto', 'rootless', 'rootful'] as const;
/** `auto`: a rootless engine where there is one that holds the limits of a stack; `rootless`: no other. */
export type EngineWish = (typeof ENGINE_WISHES)[number];

export const EngineRecord = z.object({
  kind: z.enum(['rootful', 'rootless']),
  /** `null`: what `docker` reaches by itself. */
  endpoint: z.string().nullable(),
});
export type EngineRecord = z.infer<typeof EngineRecord>;

export const ROOTFUL: EngineRecord = { kind: 'rootful', endpoint: null };
