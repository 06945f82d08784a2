export { SandboxerApiError } from './api-error.ts';
export type { AuditFilter } from './audit.ts';
export { type ConnectionFailure, SandboxerConnectionError } from './connection-error.ts';
export type { CreditBalance, CreditTransfer } from './credits.ts';
export type { EventFilter, FollowOptions } from './events.ts';
export type { ExecHandle, ResultOptions } from './exec-handle.ts';
export type { ExecOutput } from './exec-output.ts';
export type { Backend } from './extensions.ts';
export type { Listing, ReadOptions, WriteOptions } from './files.ts';
export type { ExecChunk, OutputChunk, OutputStream } from './frames.ts';
export type { InteractiveExec } from './interactive-exec.ts';
export type { CreateKeyInput, NewKey } from './keys.ts';
export type { NotTaken, SyncOptions, SyncReport } from './mirror/sync-mirror.ts';
export { syncMirror } from './mirror/sync-mirror.ts';
export { type Tree, type TreeEntry, treeOfUpload } from './mirror/tree-entry.ts';
export type { ClientOptions } from './open-transport.ts';
export type { PackOptions } from './pack-tree.ts';
export type { Page, PagedList } from './paged-list.ts';
export type { PortAddress, PortInput } from './ports.ts';
export type { AttachOptions } from './processes.ts';
export type { CatalogueProfile, ProfileCheck, ProfileList } from './profiles.ts';
export type { SetProviderKeyInput } from './provider-keys.ts';
export type { RegistryReport } from './registry.ts';
export { SandboxerClient } from './sandboxer-client.ts';
export type {
  CreateOptions,
  DestroyOptions,
  Explanation,
  SandboxFilter,
  Usage,
  WaitOptions,
} from './sandboxes.ts';
export type { SinkList } from './sinks.ts';
export type { RestoreInput, SnapshotFilter } from './snapshots.ts';
export type { Bytes, CallOptions, RequestSpec } from './transport.ts';
export type { UnpackOptions } from './unpack-tree.ts';
export { uploadRef } from './uploads.ts';
export type { CreateWebhookInput, DeliveryList, DeliveryQuery, NewWebhook } from './webhooks.ts';
