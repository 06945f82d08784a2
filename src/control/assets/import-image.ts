import type { BuildImageRequest } from '../../contract/assets/image.ts';
import { SandboxerError } from '../../contract/errors/errors.ts';
import type { ImageRecord } from '../../core/assets/image.ts';
import type { Extension, ImageSpec, ImportedImage } from '../../core/ports/extension.ts';
import type { Tx } from '../../core/ports/store/store.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { requireScope } from '../../core/tenancy/caller.ts';
import { contextFor, extensionOf } from '../backends/backend-context.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
import { recordedTransaction } from '../requests/audit.ts';
import { requireSharer } from './find-kept.ts';
import { sweepKept } from './sweep-kept.ts';

export type ImageRequest = Omit<BuildImageRequest, 'suite' | 'packages'>;

/** An import that is not complete after this time never will be: its server died on the way. */
const GIVEN_UP_MS = 3 * 3_600_000;

async function requireImageRoom(tx: Tx, deps: ControlPorts, workspaceId: string): Promise<number> {
  const { maxImages, maxImageBytes } = deps.settings;
  const own = (await tx.images.list(workspaceId)).filter((image) => image.workspaceId === workspaceId);
  const left = maxImageBytes - own.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  if (own.length < maxImages && left > 0) return left;
  const what = left > 0 ? `${maxImages} images` : `${maxImageBytes} bytes of images`;
  throw new SandboxerError('SBX_QUOTA_EXCEEDED', `The workspace has its ${what} already.`, {
    remedy: 'Remove images that are not used any more.',
  });
}

/** Whether both records are the same image under the same name: a repeated import returns the existing record. */
function isSame(one: ImageRecord, other: ImageRecord): boolean {
  return (
    one.id !== other.id &&
    one.state === 'available' &&
    one.workspaceId === other.workspaceId &&
    one.extensionId === other.extensionId &&
    one.name === other.name &&
    one.digest === other.digest &&
    one.shared === other.shared
  );
}

/** `null` is for ever. */
function laterOf(one: number | null, other: number | null): number | null {
  return one === null || other === null ? null : Math.max(one, other);
}

async function keepImage(
  deps: ControlPorts,
  caller: Caller,
  request: ImageRequest,
  make: (extension: Extension, spec: ImageSpec) => Promise<ImportedImage>,
): Promise<ImageRecord> {
  if (request.shared) requireSharer(caller);
  const extension = extensionOf(deps, request.extension);
  const now = deps.clock.now();
  const id = deps.ids.next('img');
  const recorded = { label: 'image-begin', action: 'importImage', target: () => id };
  const { maxBytes, begun } = await recordedTransaction(deps, caller, recorded, async (tx) => {
    const left = await requireImageRoom(tx, deps, caller.workspaceId);
    const record: ImageRecord = {
      id,
      workspaceId: caller.workspaceId,
      version: 1,
      name: request.name,
      shared: request.shared,
      state: 'making',
      createdAt: now,
      expiresAt: now + GIVEN_UP_MS,
      extensionId: extension.header.id,
      digest: null,
      architecture: 'unknown',
      sizeBytes: 0,
      source: 'tar',
      config: { env: {}, user: null, workdir: null, entrypoint: [], cmd: [] },
    };
    await tx.images.insert(record);
    return { maxBytes: left, begun: record };
  });
  try {
    const made = await make(extension, { imageId: id, owner: deps.owner, maxBytes });
    const expiresAt = request.retain === undefined ? null : deps.clock.now() + request.retain * 1000;
    const kept = await deps.store.transaction('image-available', async (tx) => {
      const whole: ImageRecord = { ...begun, ...made, state: 'available', expiresAt };
      const same = (await tx.images.list(caller.workspaceId)).find((other) => isSame(other, whole));
      if (same === undefined) return await tx.images.update(whole);
      await tx.images.update({ ...begun, state: 'deleting' });
      const until = laterOf(same.expiresAt, expiresAt);
      return until === same.expiresAt ? same : await tx.images.update({ ...same, expiresAt: until });
    });
    if (kept.id !== id) await sweepKept(deps, id);
    return kept;
  } catch (error) {
    // The sweep finds by its id what the import left at the backend.
    await deps.store.transaction('image-failed', async (tx) => {
      const current = await tx.images.get(id);
      if (current) await tx.images.update({ ...current, state: 'deleting' });
    });
    await sweepKept(deps, id);
    throw error;
  }
}

function unsupported(extension: Extension, what: string): SandboxerError {
  const { id } = extension.header;
  return new SandboxerError('SBX_UNSUPPORTED', `${id} ${what}.`, {
    backend: id,
    remedy: 'Choose a backend whose vector has "imported" among its images.',
  });
}

interface ImportImage {
  readonly request: ImageRequest;
  readonly body: AsyncIterable<Uint8Array>;
  readonly signal: AbortSignal;
}

/** Keeps an image that the caller sends. */
export async function importImage(
  deps: ControlPorts,
  caller: Caller,
  { request, body, signal }: ImportImage,
): Promise<ImageRecord> {
  requireScope(caller, 'sandboxes');
  return await keepImage(deps, caller, request, async (extension, spec) => {
    if (!extension.importImage) throw unsupported(extension, 'keeps no images');
    return await extension.importImage(spec, body, await contextFor(deps, null, signal));
  });
}

interface BuildImage {
  readonly request: BuildImageRequest;
  readonly signal: AbortSignal;
}

/**
 * Refuses a package list from any caller but the server's administrator: packages run their scripts as the server's own user
 * while they are unpacked.
 */
export async function buildImage(
  deps: ControlPorts,
  caller: Caller,
  { request, signal }: BuildImage,
): Promise<ImageRecord> {
  requireScope(caller, 'server');
  const { suite, packages, ...rest } = request;
  return await keepImage(deps, caller, rest, async (extension, spec) => {
    if (!extension.buildImage) throw unsupported(extension, 'builds no images');
    return await extension.buildImage(spec, { suite, packages }, await contextFor(deps, null, signal));
  });
}
