export type { PackOptions } from '../trees/pack-tree.ts';
export type { UnpackOptions } from '../trees/unpack-tree.ts';
export type { NotTaken, SyncOptions, SyncReport } from './mirror/sync-mirror.ts';
export { syncMirror } from './mirror/sync-mirror.ts';
export { type Tree, type TreeEntry, treeOfUpload } from './mirror/tree-entry.ts';
export type { AuditFilter } from './resources/audit.ts';
export type { CreditBalance, CreditTransfer } from './resources/credits.ts';
export type { EventFilter, FollowOptions } from './resources/events.ts';
export type { Backend } from './resources/extensions.ts';
export type { Listing, ReadOptions, WriteOptions } from './resources/files.ts';
export type { CreateKeyInput, NewKey } from './resources/keys.ts';
export type { PortAddress, PortInput } from './resources/ports.ts';
export type { AttachOptions } from './resources/processes.ts';
export type { CatalogueProfile, ProfileCheck, ProfileList } from './resources/profiles.ts';
export type { SetProviderKeyInput } from './resources/provider-keys.ts';
export type { RegistryReport } from './resources/registry.ts';
export type {
  CreateOptions,
  DestroyOptions,
  Explanation,
  SandboxFilter,
  Usage,
  WaitOptions,
} from './resources/sandboxes.ts';
export type { SinkList } from './resources/sinks.ts';
export type { RestoreInput, SnapshotFilter } from './resources/snapshots.ts';
export { uploadRef } from './resources/uploads.ts';
export type { CreateWebhookInput, DeliveryList, DeliveryQuery, NewWebhook } from './resources/webhooks.ts';
export { SandboxerClient } from './sandboxer-client.ts';
export type { ExecHandle, ResultOptions } from './streams/exec-handle.ts';
export type { ExecOutput } from './streams/exec-output.ts';
export type { ExecChunk, OutputChunk, OutputStream } from './streams/frames.ts';
export type { InteractiveExec } from './streams/interactive-exec.ts';
export { SandboxerApiError } from './transport/api-error.ts';
export { type ConnectionFailure, SandboxerConnectionError } from './transport/connection-error.ts';
export type { ClientOptions } from './transport/open-transport.ts';
export type { Page, PagedList } from './transport/paged-list.ts';
export type { Bytes, CallOptions, RequestSpec } from './transport/transport.ts';
