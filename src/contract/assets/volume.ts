import { z } from 'zod';
import { boundedList } from '../values/bounded.ts';
import { ExtensionId } from '../values/ids.ts';
import { Labels } from '../values/json.ts';
import { SizeMb } from '../values/size.ts';

export const VolumeId = z.string().regex(/^vol_[a-z0-9]{10,40}$/, 'A volume id looks like "vol_…".');
export const VolumeName = z
  .string()
  .regex(/^[a-z0-9](?:[a-z0-9._-]{0,61}[a-z0-9])?$/, 'Use 1–63 lower-case letters, digits, ".", "_" or "-".')
  .refine((name) => !name.startsWith('vol_'), 'This name has a meaning of its own.');

/** Paths that no mount may hide: the sandbox itself or its programs need them, or they are in memory and stay there. */
const OURS = /^\/(?:(?:proc|sys|dev|run|var\/run|\.init|\.door|opt\/sandboxer)(?:\/|$)|opt$)/;
const SYSTEM = /^\/(?:bin|etc|lib|lib32|lib64|libx32|sbin|usr)$/;
const MountPath = z
  .string()
  .max(1024)
  .regex(
    /^\/[^\u0000-\u001f\u007f]*[^/\u0000-\u001f\u007f]$/,
    'An absolute path, without a slash at its end.',
  )
  .refine(
    (path) => !path.split('/').some((part, at) => at > 0 && (part === '' || part === '.' || part === '..')),
    'Write the path without "//", "." and "..".',
  )
  .refine(
    (path) => !OURS.test(path),
    'This place belongs to the sandbox itself: choose another, such as /mnt/data.',
  )
  .refine(
    (path) => !SYSTEM.test(path),
    'The programs inside stand on this place: choose another, such as /mnt/data.',
  );

/** A volume of the workspace in a sandbox. */
export const VolumeMount = z
  .strictObject({
    name: VolumeName,
    path: MountPath,
    access: z.enum(['ro', 'rw']).default('rw'),
  })
  .meta({ id: 'VolumeMount' });
export type VolumeMount = z.infer<typeof VolumeMount>;

export const VolumeMounts = boundedList(z.array(VolumeMount).max(16), 16).refine(
  (mounts) => new Set(mounts.map(({ path }) => path)).size === mounts.length,
  'Two volumes have the same path.',
);

export const CreateVolumeRequest = z
  .strictObject({
    name: VolumeName,
    size_mb: SizeMb.nullable().default(null).describe('Most it can hold; null for what the host has.'),
    extension: ExtensionId.default('ext.local'),
    labels: Labels.default({}),
  })
  .meta({ id: 'CreateVolumeRequest' });
export type CreateVolumeRequest = z.infer<typeof CreateVolumeRequest>;

/** A directory that outlives sandboxes. */
export const Volume = z
  .strictObject({
    volume_id: z.string(),
    workspace_id: z.string(),
    name: z.string(),
    extension: z.string().describe('Backend that stores the volume.'),
    size_mb: z.number().int().nullable(),
    state: z.enum(['making', 'available', 'deleting']),
    mounted_by: z.array(z.string()).describe('Sandboxes that have it now.'),
    labels: z.record(z.string(), z.string()),
    created_at: z.string(),
  })
  .meta({ id: 'Volume' });
export type Volume = z.infer<typeof Volume>;

export const VolumeList = z.strictObject({ items: z.array(Volume) }).meta({ id: 'VolumeList' });
