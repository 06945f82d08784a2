import { createHash } from 'node:crypto';
import { SandboxerError } from '../../contract/errors/errors.ts';
import type { UploadRecord } from '../../core/assets/upload.ts';
import type { InputPort, StagedArchive } from '../../core/ports/inputs.ts';
import type { Tx } from '../../core/ports/store/store.ts';
import type { TreeOrigin } from '../../core/recipe/tree-input.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { requireScope } from '../../core/tenancy/caller.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
import { recordedTransaction } from '../requests/audit.ts';

export function requireInputs(deps: ControlPorts): InputPort {
  if (deps.inputs) return deps.inputs;
  throw new SandboxerError('SBX_UNSUPPORTED', 'This server takes no uploads.', { creation: 'not_created' });
}

/**
 * Makes the same id for the same content in the same workspace. The id does not reveal whether another workspace has that
 * content.
 */
function uploadId(workspaceId: string, digest: string): string {
  const hash = createHash('sha256').update(`${workspaceId}\n${digest}`).digest('hex');
  return `upl_${hash.slice(0, 40)}`;
}

function tooMuch({ workspaceBytes }: InputPort['limits']): SandboxerError {
  return new SandboxerError('SBX_QUOTA_EXCEEDED', `All uploads together may have ${workspaceBytes} bytes.`, {
    creation: 'not_created',
    retryable: false,
    remedy: 'Delete uploads that no sandbox needs, or wait until they expire.',
  });
}

async function write(tx: Tx, limits: InputPort['limits'], record: UploadRecord): Promise<UploadRecord> {
  const known = await tx.uploads.get(record.id);
  const total = known ? 0 : await tx.uploads.totalBytes(record.workspaceId);
  if (total + record.sizeBytes > limits.workspaceBytes && !known) throw tooMuch(limits);
  return tx.uploads.put(record);
}

/** Blob first, row second: a crash in between leaves a blob that the sweep removes. */
export async function keepStaged(
  deps: ControlPorts,
  caller: Caller,
  staged: StagedArchive,
  origin: TreeOrigin,
): Promise<UploadRecord> {
  const { limits } = requireInputs(deps);
  const { workspaceId } = caller;
  const id = uploadId(workspaceId, staged.digest);
  const now = deps.clock.now();
  const record: UploadRecord = {
    id,
    workspaceId,
    digest: staged.digest,
    sizeBytes: staged.sizeBytes,
    entries: staged.entries,
    origin,
    createdAt: now,
    expiresAt: now + limits.keepMs,
  };
  const recorded = { label: 'upload', action: 'createUpload', target: () => id };
  const put = (tx: Tx) => write(tx, limits, record);
  return staged.keep(id, () =>
    // An upload that a create brings is audited with the record of the create.
    origin.kind === 'upload'
      ? recordedTransaction(deps, caller, recorded, put)
      : deps.store.transaction('upload', put),
  );
}

interface StageUpload {
  readonly archive: AsyncIterable<Uint8Array>;
  readonly signal?: AbortSignal | undefined;
}

/** Receives an archive, checks it and holds it for a sandbox to be made from. */
export async function stageUpload(
  deps: ControlPorts,
  caller: Caller,
  { archive, signal }: StageUpload,
): Promise<UploadRecord> {
  requireScope(caller, 'sandboxes');
  const port = requireInputs(deps);
  const { workspaceId } = caller;
  const total = await deps.store.read('upload-room', (tx) => tx.uploads.totalBytes(workspaceId));
  if (total >= port.limits.workspaceBytes) throw tooMuch(port.limits);
  const staged = await port.stage(archive, signal);
  try {
    return await keepStaged(deps, caller, staged, { kind: 'upload' });
  } finally {
    await staged.discard();
  }
}
