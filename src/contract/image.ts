import { z } from 'zod';

/** A root file system or VM disk, imported or built, known by its digest. */
export const Image = z
  .strictObject({
    name: z.string(),
    digest: z.string().regex(/^sha256:[0-9a-f]{64}$/),
    kind: z.enum(['rootfs', 'disk']),
    architecture: z.string(),
    size_bytes: z.number().int(),
    source: z.string(),
    created_at: z.string(),
  })
  .meta({ id: 'Image' });
export type Image = z.infer<typeof Image>;
