import { SandboxerError } from '../contract/errors/errors.ts';
import type { CapabilityVector } from '../contract/extensions/capability.ts';
import type { SecretRef } from '../contract/profiles/secret.ts';
import type { ResolvedSecret } from '../core/ports/extension.ts';
import type { SecretProvider } from '../core/ports/secrets.ts';

/** The providers by the name that references use. */
export type SecretProviders = Readonly<Record<string, SecretProvider>>;

/**
 * The values behind the references, for one backend. Nothing is read that the backend could not deliver. An error
 * names the reference and never holds a value, not even as its cause.
 */
export async function resolveSecrets(
  refs: readonly SecretRef[],
  providers: SecretProviders,
  capabilities: Pick<CapabilityVector, 'credentials'>,
  signal: AbortSignal,
): Promise<readonly ResolvedSecret[]> {
  for (const { name, delivery } of refs) {
    if (capabilities.credentials.includes(delivery)) continue;
    const offered = capabilities.credentials.join(', ') || 'none';
    throw new SandboxerError(
      'SBX_SECRET_DELIVERY',
      `The secret ${name} is to be delivered by "${delivery}"; the backend offers ${offered}.`,
      { field: 'setup.secret_refs' },
    );
  }
  return Promise.all(refs.map((ref) => resolveOne(ref, providers, signal)));
}

async function resolveOne(
  ref: SecretRef,
  providers: SecretProviders,
  signal: AbortSignal,
): Promise<ResolvedSecret> {
  const { name, delivery } = ref;
  const provider = Object.hasOwn(providers, ref.provider) ? providers[ref.provider] : undefined;
  if (!provider) {
    const known = Object.keys(providers).join(', ') || 'none';
    throw unresolved(ref, 'there is no such provider', `Configure it, or use one of: ${known}.`);
  }
  try {
    return { name, delivery, value: await provider.resolve(ref.key ?? name, signal) };
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof SandboxerError) throw unresolved(ref, error.detail, error.remedy);
    throw unresolved(ref, 'the provider failed');
  }
}

function unresolved(ref: SecretRef, reason: string, remedy?: string): SandboxerError {
  const place = `${ref.provider}:${ref.key ?? ref.name}`;
  return new SandboxerError('SBX_SECRET_UNRESOLVED', `The secret ${ref.name} (${place}): ${reason}`, {
    field: 'setup.secret_refs',
    ...(remedy !== undefined && { remedy }),
  });
}
