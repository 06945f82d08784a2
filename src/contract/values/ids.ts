import { z } from 'zod';

/** Characters that are safe in a path segment, a container name, a DNS label's neighbourhood and a file name. */
const NAME = '[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?';

/** A sandbox's public id: ours (`sbx_…`) or chosen by the client. Unique within its workspace. */
export const SandboxId = z
  .string()
  .regex(
    new RegExp(`^${NAME}$`),
    'Use 1–63 letters, digits, ".", "_" or "-", starting and ending with a letter or digit.',
  );

export const SnapshotId = z.string().regex(/^snap_[a-z0-9]{10,40}$/, 'A snapshot id looks like "snap_…".');
export const WorkspaceId = z
  .string()
  .regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'Use 1–63 lower-case letters, digits or "-".');
export const OrgId = z
  .string()
  .regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'Use 1–63 lower-case letters, digits or "-".');
export const KeyId = z.string().regex(/^key_[a-z0-9]{10,40}$/, 'A key id looks like "key_…".');
export const BudgetId = z.string().regex(/^bgt_[a-z0-9]{10,40}$/, 'A budget id looks like "bgt_…".');
export const ProviderKeyId = z
  .string()
  .regex(/^pky_[a-z0-9]{10,40}$/, 'A provider key id looks like "pky_…".');
export const WebhookId = z.string().regex(/^whk_[a-z0-9]{10,40}$/, 'A webhook id looks like "whk_…".');
export const HostId = z
  .string()
  .regex(/^[a-z0-9][a-z0-9.-]{0,62}$/, 'Use 1–63 lower-case letters, digits, "." or "-".');
export const ExtensionId = z
  .string()
  .regex(/^ext\.[a-z0-9]+(?:-[a-z0-9]+)*(?:#[a-z0-9-]{1,32})?$/, 'An extension id looks like "ext.local".');
export const ProfileId = z
  .string()
  .regex(/^profile\.[a-z0-9]+(?:-[a-z0-9]+)*$/, 'A profile id looks like "profile.agent-dev".');
export const ProfileVersion = z
  .string()
  .regex(/^\d{1,6}\.\d{1,6}\.\d{1,6}(?:-[0-9A-Za-z.-]{1,40})?$/, 'A version looks like "1.0.0".');
/** `profile.agent-dev`, `profile.agent-dev@1.0.0`; the `profile.` prefix may be left out. */
export const ProfileRef = z
  .string()
  .max(140)
  .regex(
    /^(?:profile\.)?[a-z0-9]+(?:-[a-z0-9]+)*(?:@\d{1,6}\.\d{1,6}\.\d{1,6}(?:-[0-9A-Za-z.-]{1,40})?)?$/,
    'Name a profile as "profile.agent-dev" or "profile.agent-dev@1.0.0".',
  );
/** A name inside a path segment or a label key. */
export const PlainName = z
  .string()
  .regex(new RegExp(`^${NAME}$`), 'Use 1–63 letters, digits, ".", "_" or "-".');
