import { z } from 'zod';

/** A path inside the sandbox. It is resolved there: no `..` and no symlink leads out. */
export const SandboxPath = z
  .string()
  .min(1)
  .max(4096)
  .refine((path) => !path.includes('\0'), 'A path cannot hold a NUL byte.');

export const FileKind = z.enum(['file', 'directory', 'symlink', 'other']);
export const FileEntry = z
  .strictObject({
    name: z.string(),
    path: z.string(),
    kind: FileKind,
    size: z.number().int(),
    mode: z.number().int().describe('Permission bits.'),
    modified_at: z.string(),
    link_target: z.string().nullable(),
  })
  .meta({ id: 'FileEntry' });
export type FileEntry = z.infer<typeof FileEntry>;

export const FileListing = z
  .strictObject({ path: z.string(), entries: z.array(FileEntry), truncated: z.boolean() })
  .meta({ id: 'FileListing' });

export const MkdirRequest = z
  .strictObject({
    path: SandboxPath,
    parents: z.boolean().default(true),
    mode: z.number().int().min(0).max(0o7777).default(0o755),
  })
  .meta({ id: 'MkdirRequest' });
export const MoveRequest = z
  .strictObject({ from: SandboxPath, to: SandboxPath, overwrite: z.boolean().default(false) })
  .meta({ id: 'MoveRequest' });
export const FileChange = z
  .strictObject({ kind: z.enum(['created', 'modified', 'removed', 'renamed', 'overflow']), path: z.string() })
  .meta({ id: 'FileChange' });
export type FileChange = z.infer<typeof FileChange>;
