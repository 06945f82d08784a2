import { z } from 'zod';
import { boundedList } from '../values/bounded.ts';
import { DurationSeconds } from '../values/duration.ts';
import { ExtensionId } from '../values/ids.ts';

/** The name of an image that is an asset, as a profile names it. An engine's own references may have more in them. */
export const ImageName = z
  .string()
  .regex(/^[a-z0-9](?:[a-z0-9._-]{0,61}[a-z0-9])?$/, 'Use 1–63 lower-case letters, digits, ".", "_" or "-".')
  .refine((name) => name !== 'host' && !name.startsWith('img_'), 'This name has a meaning of its own.');
export const ImageDigest = z.string().regex(/^sha256:[0-9a-f]{64}$/, 'A digest looks like "sha256:…".');
export const ImageId = z.string().regex(/^img_[a-z0-9]{10,40}$/, 'An image id looks like "img_…".');

/** The settings of an image for the programs that are run in it. */
export const ImageConfig = z
  .strictObject({
    env: z.record(z.string(), z.string()),
    user: z.string().nullable(),
    workdir: z.string().nullable(),
    entrypoint: z
      .array(z.string())
      .describe('Shown only, never run: exec runs the command that it is given.'),
    cmd: z.array(z.string()),
  })
  .meta({ id: 'ImageConfig' });
export type ImageConfig = z.infer<typeof ImageConfig>;

export const ImageSource = z.enum(['tar', 'oci', 'docker', 'build']);
export type ImageSource = z.infer<typeof ImageSource>;

/** A root file system or VM disk, imported or built, known by its digest. */
export const Image = z
  .strictObject({
    image_id: z.string(),
    workspace_id: z.string(),
    name: z.string(),
    digest: ImageDigest.nullable().describe(
      'Of the manifest, the image’s configuration, or the tar. Null until it is there.',
    ),
    reference: z.string().nullable().describe('Value for a profile’s `image`: name@digest.'),
    kind: z.enum(['rootfs', 'disk']),
    architecture: z.string(),
    size_bytes: z.number().int(),
    source: ImageSource,
    extension: z.string().describe('Backend that stores the image.'),
    shared: z.boolean().describe('Every workspace may use it.'),
    state: z.enum(['importing', 'available', 'deleting']),
    config: ImageConfig,
    created_at: z.string(),
    expires_at: z.string().nullable(),
  })
  .meta({ id: 'Image' });
export type Image = z.infer<typeof Image>;

export const ImageList = z.strictObject({ items: z.array(Image) }).meta({ id: 'ImageList' });

const Debian = z
  .string()
  .regex(/^[a-z0-9][a-z0-9+.-]{0,63}$/, 'Use lower-case letters, digits, "+", "." or "-".');

/** A Debian root file system, made here. */
export const BuildImageRequest = z
  .strictObject({
    name: ImageName,
    suite: Debian.default('stable').describe('Such as bookworm.'),
    packages: boundedList(z.array(Debian).max(512), 512).default([]),
    extension: ExtensionId.default('ext.local'),
    shared: z.boolean().default(false),
    retain: DurationSeconds.optional().describe('Deleted by us after this time.'),
  })
  .meta({ id: 'BuildImageRequest' });
export type BuildImageRequest = z.infer<typeof BuildImageRequest>;
