import { z } from 'zod';

export const ENGINE_WISHES = ['auto', 'rootless', 'rootful'] as const;
/** `auto`: a rootless engine where one enforces the limits of a stack; `rootless`: no other. */
export type EngineWish = (typeof ENGINE_WISHES)[number];

export const EngineRecord = z.object({
  kind: z.enum(['rootful', 'rootless']),
  /** `null`: the engine that `docker` reaches by itself. */
  endpoint: z.string().nullable(),
});
export type EngineRecord = z.infer<typeof EngineRecord>;

export const ROOTFUL: EngineRecord = { kind: 'rootful', endpoint: null };
