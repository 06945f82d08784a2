import { z } from 'zod';

/** Made from the workspace and the content: the same archive is the same upload. */
export const UploadId = z.string().regex(/^upl_[0-9a-f]{40}$/, 'An upload id looks like "upl_…".');

/** A file tree that waits to become part of a sandbox. */
export const Upload = z
  .strictObject({
    upload_id: UploadId,
    workspace_id: z.string(),
    digest: z.string().describe('sha256:… of the archive as it was sent.'),
    size_bytes: z.number().int(),
    entries: z.number().int().describe('Files, directories and links.'),
    created_at: z.string(),
    expires_at: z
      .string()
      .describe('When it goes if no sandbox has it. One that a sandbox was made from stays as long as that.'),
  })
  .meta({ id: 'Upload' });
export type Upload = z.infer<typeof Upload>;

export const UploadPage = z
  .strictObject({ items: z.array(Upload), next_cursor: z.string().nullable() })
  .meta({ id: 'UploadPage' });

/** A line of an upload's table of contents. */
export const UploadEntry = z
  .strictObject({
    path: z.string(),
    kind: z.enum(['file', 'directory', 'symlink']),
    mode: z.number().int(),
    size: z.number().int(),
    digest: z.string().nullable().describe('sha256:… of the content of a file.'),
    link_target: z.string().nullable(),
  })
  .meta({ id: 'UploadEntry' });
export type UploadEntry = z.infer<typeof UploadEntry>;
