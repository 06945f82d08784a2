import { SandboxerError } from '../../contract/errors/errors.ts';
import { LOCAL_HOST } from '../../core/hosts/host.ts';
import { attemptIdOf } from '../../core/lifecycle/attempt.ts';
import type { SandboxRecord } from '../../core/lifecycle/sandbox.ts';
import type { Extension, ExtensionContext, PlacementHost } from '../../core/ports/extension.ts';
import { keyContext } from '../../core/tenancy/provider-key.ts';
import type { ControlPorts } from '../ports/control-ports.ts';

/** Returns the backend of this name. Throws SBX_UNSUPPORTED where it is not enabled. */
export function extensionOf(deps: ControlPorts, extensionId: string): Extension {
  const extension = deps.extensions.get(extensionId);
  if (extension) return extension;
  throw new SandboxerError('SBX_UNSUPPORTED', `The backend ${extensionId} is not enabled on this server.`, {
    creation: 'not_created',
    backend: extensionId,
    remedy: `Enable ${extensionId} in the configuration, or choose another backend.`,
  });
}

/** Makes the context of a call to a backend: the host of the sandbox, and the vendor's key that pays. */
export async function contextFor(
  deps: ControlPorts,
  hostId: string | null,
  signal: AbortSignal,
  providerKeyId: string | null = null,
): Promise<ExtensionContext> {
  const host = hostId === null ? null : await hostFor(deps, hostId);
  const key = providerKeyId === null ? null : await openKey(deps, providerKeyId);
  return { signal, clock: deps.clock, log: deps.log, host, ...(key !== null && { key }) };
}

/** Makes the context with the key of the sandbox's attempt. The attempt is read only for backends that take keys. */
export async function contextOf(
  deps: ControlPorts,
  sandbox: Pick<SandboxRecord, 'uid' | 'generation' | 'attempt' | 'extensionId' | 'hostId'>,
  signal: AbortSignal,
): Promise<ExtensionContext> {
  const { uid, generation, attempt, extensionId, hostId } = sandbox;
  const takesKeys = extensionId !== null && deps.extensions.get(extensionId)?.checkKey !== undefined;
  if (!takesKeys || attempt === null) return contextFor(deps, hostId, signal);
  const id = attemptIdOf(uid, generation, attempt);
  const made = await deps.store.read('attempt-key', (tx) => tx.attempts.get(id));
  return contextFor(deps, hostId, signal, made?.providerKeyId ?? null);
}

async function hostFor(deps: ControlPorts, hostId: string): Promise<PlacementHost> {
  if (hostId === LOCAL_HOST) return { id: hostId, labels: {}, ssh: null };
  const record = await deps.store.read('host', (tx) => tx.hosts.get(hostId));
  if (record && deps.hosts) return deps.hosts.reach(record);
  throw new SandboxerError('SBX_HOST_UNREACHABLE', `The host ${hostId} is not registered.`, {
    creation: 'not_created',
    remedy: `Register it again: sandboxer hosts add ${hostId}`,
  });
}

/** Opens the key. A call without it is refused: another account would be billed, and would not have the object. */
async function openKey(deps: ControlPorts, id: string): Promise<string> {
  const unusable = (detail: string) =>
    new SandboxerError('SBX_PROVIDER_KEY_UNUSABLE', detail, { creation: 'not_created' });
  const record = await deps.store.read('provider-key', (tx) => tx.providerKeys.get(id));
  if (!record) throw unusable(`The provider key ${id} is gone.`);
  if (!deps.secretBox) throw unusable('This server has no master key.');
  try {
    return deps.secretBox.open(record.sealed, keyContext(id));
  } catch (error) {
    throw unusable(
      `The provider key ${id} cannot be opened. ${error instanceof SandboxerError ? error.detail : ''}`.trim(),
    );
  }
}
