import { SandboxerError } from '../../contract/errors/errors.ts';
import type { SetProviderKeyRequest } from '../../contract/tenancy/provider-key.ts';
import { webhookSinkId } from '../../core/events/webhook.ts';
import type { SecretBox } from '../../core/ports/secret-box.ts';
import type { Tx } from '../../core/ports/store/store.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { requireScope } from '../../core/tenancy/caller.ts';
import type { ProviderKeyRecord } from '../../core/tenancy/provider-key.ts';
import { hintOf, keyContext } from '../../core/tenancy/provider-key.ts';
import { within } from '../backends/within.ts';
import type { Control } from '../control.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
import { auditedTransaction } from '../requests/audit.ts';

function boxOf({ secretBox }: ControlPorts): SecretBox {
  if (secretBox) return secretBox;
  throw new SandboxerError(
    'SBX_UNAVAILABLE',
    'This server has no master key, so it keeps no provider keys.',
    {
      remedy:
        'Give it one: master_key.file or master_key.command in its configuration, or SANDBOXER_MASTER_KEY.',
    },
  );
}

function isVisible(caller: Caller, key: ProviderKeyRecord): boolean {
  return key.workspaceId === caller.workspaceId || (key.workspaceId === null && caller.scopes.has('server'));
}

/** Finds a provider key. A key of another workspace counts as not found; a key of the platform belongs to its administrators. */
async function findKey(tx: Tx, caller: Caller, id: string): Promise<ProviderKeyRecord> {
  const key = await tx.providerKeys.get(id);
  if (key && isVisible(caller, key)) return key;
  throw new SandboxerError('SBX_NOT_FOUND', `There is no provider key "${id}".`, {
    remedy: 'List the provider keys to see which exist.',
  });
}

/** The vendor is asked, through the extension: a key that it does not take is not kept. */
async function tryKey(
  deps: ControlPorts,
  extensionId: string,
  key: string,
  signal: AbortSignal,
): Promise<void> {
  const extension = deps.extensions.get(extensionId);
  const check = extension?.checkKey?.bind(extension);
  if (!check) {
    const detail = extension
      ? `${extensionId} is used without a key.`
      : `There is no backend ${extensionId} on this server.`;
    throw new SandboxerError('SBX_INVALID_REQUEST', detail, {
      field: 'extension',
      remedy: 'Name a backend of a vendor: sandboxer extensions lists them.',
    });
  }
  const { clock, log, settings } = deps;
  await within(deps, settings.operationTimeoutMs, signal, (given) =>
    check({ signal: given, clock, log, host: null, key }),
  );
}

function isRefusal(error: unknown): boolean {
  return error instanceof SandboxerError && error.code === 'SBX_BACKEND_AUTH';
}

interface SetProviderKey {
  readonly request: SetProviderKeyRequest;
  readonly signal: AbortSignal;
}

/** Stores a provider key. An existing key gets the new secret, which its running sandboxes use from then on. */
export async function setProviderKey(
  control: Control,
  caller: Caller,
  { request, signal }: SetProviderKey,
): Promise<ProviderKeyRecord> {
  const { extension: extensionId, scope, secret, label } = request;
  requireScope(caller, scope === 'platform' ? 'server' : 'keys');
  const box = boxOf(control);
  await tryKey(control, extensionId, secret, signal).catch((error: unknown) => {
    if (!isRefusal(error)) throw error;
    throw new SandboxerError('SBX_PROVIDER_KEY_REFUSED', `The vendor of ${extensionId} refuses this key.`, {
      field: 'secret',
      cause: error,
    });
  });
  const workspaceId = scope === 'platform' ? null : caller.workspaceId;
  const fresh = control.ids.next('pky');
  const subject = { action: 'setProviderKey', target: extensionId, details: { scope } };
  return auditedTransaction(control, caller, { label: 'set-provider-key', subject }, async (tx) => {
    const now = control.clock.now();
    const all = await tx.providerKeys.usableBy(caller.workspaceId);
    const old = all.find((key) => key.workspaceId === workspaceId && key.extensionId === extensionId);
    const id = old?.id ?? fresh;
    const record: ProviderKeyRecord = {
      id,
      workspaceId,
      extensionId,
      version: old?.version ?? 1,
      label,
      sealed: box.seal(secret, keyContext(id)),
      hint: hintOf(secret),
      state: 'active',
      createdAt: old?.createdAt ?? now,
      checkedAt: now,
      refusedAt: null,
    };
    if (old) return tx.providerKeys.update(record);
    await tx.providerKeys.insert(record);
    return record;
  });
}

export async function listProviderKeys(
  control: Control,
  caller: Caller,
): Promise<readonly ProviderKeyRecord[]> {
  requireScope(caller, 'keys');
  const all = await control.store.read('provider-keys', (tx) => tx.providerKeys.usableBy(caller.workspaceId));
  return all.filter((key) => isVisible(caller, key));
}

interface TestProviderKey {
  readonly id: string;
  readonly signal: AbortSignal;
}

/** Asks the vendor again: a key that it accepts is used again, a key that it refuses is refused from now on. */
export async function testProviderKey(
  control: Control,
  caller: Caller,
  { id, signal }: TestProviderKey,
): Promise<ProviderKeyRecord> {
  requireScope(caller, 'keys');
  const box = boxOf(control);
  const key = await control.store.read('provider-key', (tx) => findKey(tx, caller, id));
  let refused = false;
  try {
    await tryKey(control, key.extensionId, box.open(key.sealed, keyContext(id)), signal);
  } catch (error) {
    if (!isRefusal(error)) throw error;
    refused = true;
  }
  return change(control, caller, { id, action: 'testProviderKey' }, (now, at) =>
    refused
      ? { ...now, state: 'refused', refusedAt: now.refusedAt ?? at }
      : { ...now, state: now.state === 'disabled' ? 'disabled' : 'active', checkedAt: at, refusedAt: null },
  );
}

/** Disables a key: nothing new is made with it; sandboxes that run go on, and are ended with it. */
export async function disableProviderKey(
  control: Control,
  caller: Caller,
  { id }: { readonly id: string },
): Promise<ProviderKeyRecord> {
  requireScope(caller, 'keys');
  return change(control, caller, { id, action: 'disableProviderKey' }, (now) => ({
    ...now,
    state: 'disabled',
  }));
}

/** Deletes a key that is not in use: a sandbox at the vendor can be ended only with its own key. */
export async function deleteProviderKey(
  control: Control,
  caller: Caller,
  { id }: { readonly id: string },
): Promise<void> {
  requireScope(caller, 'keys');
  const subject = { action: 'deleteProviderKey', target: id };
  await auditedTransaction(control, caller, { label: 'delete-provider-key', subject }, async (tx) => {
    await findKey(tx, caller, id);
    if (await tx.providerKeys.isUsed(id)) {
      throw new SandboxerError('SBX_CONFLICT', 'Sandboxes or snapshots were made with this key.', {
        remedy: 'Disable it, destroy them, and delete it then: without it, they could not be ended.',
      });
    }
    await tx.providerKeys.remove(id);
  });
}

/** Seals every stored secret with the current master key, so that the one before is needed no longer. */
export async function resealSecrets(
  control: Control,
  caller: Caller,
): Promise<{ readonly resealed: number; readonly unchanged: number }> {
  requireScope(caller, 'server');
  const box = boxOf(control);
  const subject = { action: 'resealSecrets', target: 'master-key' };
  return auditedTransaction(control, caller, { label: 'reseal', subject }, async (tx) => {
    const count = { resealed: 0, unchanged: 0 };
    const moved = (sealed: string, context: string) => {
      const next = box.reseal(sealed, context);
      count[next === null ? 'unchanged' : 'resealed'] += 1;
      return next ?? sealed;
    };
    for (const key of await tx.providerKeys.list())
      await tx.providerKeys.update({ ...key, sealed: moved(key.sealed, keyContext(key.id)) });
    for (const webhook of await tx.webhooks.list(null)) {
      const context = webhookSinkId(webhook.id);
      const { previousSecret: old } = webhook;
      await tx.webhooks.update({
        ...webhook,
        sealedSecret: moved(webhook.sealedSecret, context),
        previousSecret: old && { ...old, sealed: moved(old.sealed, context) },
      });
    }
    return count;
  });
}

async function change(
  deps: ControlPorts,
  caller: Caller,
  { id, action }: { readonly id: string; readonly action: string },
  edit: (now: ProviderKeyRecord, at: number) => ProviderKeyRecord,
): Promise<ProviderKeyRecord> {
  return auditedTransaction(
    deps,
    caller,
    { label: 'change-provider-key', subject: { action, target: id } },
    async (tx) => tx.providerKeys.update(edit(await findKey(tx, caller, id), deps.clock.now())),
  );
}
