import { SandboxerError } from '../../contract/errors/errors.ts';
import type { Profile } from '../../contract/profiles/profile.ts';
import type { RequestedSecretRef, SecretRef } from '../../contract/profiles/secret.ts';
import type { Caller } from '../tenancy/caller.ts';

export interface MergedSecretRefs {
  readonly refs: readonly SecretRef[];
  /** Names of the references that the request brought along. */
  readonly own: ReadonlySet<string>;
}

/**
 * The profile's references and those of a request. Naming a declared one adds nothing. Others need the profile's
 * leave (or an administrator), and never expose their value: only a profile can say `file` or `env`.
 */
export function mergeSecretRefs(
  profile: Profile,
  requested: readonly RequestedSecretRef[],
  caller: Caller,
): MergedSecretRefs {
  const declared = profile.setup.secret_refs;
  const brought = new Map<string, SecretRef>();
  for (const [index, request] of requested.entries()) {
    const field = `setup_metadata.secret_refs[${index}]`;
    if (typeof request === 'string' && declared.some(({ name }) => name === request)) continue;
    const ref = typeof request === 'string' ? parseRef(request, field) : request;
    const namesake = declared.find(({ name }) => name === ref.name);
    if (ref.delivery !== 'broker' && ref.delivery !== namesake?.delivery) refuseDelivery(ref, field);
    if (declared.some((known) => isDeclared(known, request, ref))) continue;
    if (profile.setup.request_secrets !== 'any' && caller.actor !== 'adm') {
      refuseUndeclared(profile, ref, field);
    }
    const previous = brought.get(ref.name);
    if (previous && !isSameSecret(previous, ref)) refuseAmbiguous(ref, field);
    brought.set(ref.name, { ...ref, delivery: namesake?.delivery ?? 'broker' });
  }
  const kept = declared.map((ref) => brought.get(ref.name) ?? ref);
  const added = [...brought.values()].filter(({ name }) => !declared.some((ref) => ref.name === name));
  return { refs: [...kept, ...added], own: new Set(brought.keys()) };
}

/** A string never says how the secret is named inside, so it is the same secret whatever the profile calls it. */
function isDeclared(known: SecretRef, request: RequestedSecretRef, ref: SecretRef): boolean {
  return isSameSecret(known, ref) && (typeof request === 'string' || known.name === ref.name);
}

function isSameSecret(one: SecretRef, other: SecretRef): boolean {
  return one.provider === other.provider && (one.key ?? one.name) === (other.key ?? other.name);
}

/** `vault:kv/npm-token` is called `kv_npm_token` inside. */
function parseRef(text: string, field: string): SecretRef {
  const colon = text.indexOf(':');
  const provider = colon < 0 ? 'env' : text.slice(0, colon);
  const key = text.slice(colon + 1);
  const name = key.replace(/[^A-Za-z0-9_]/g, '_').replace(/^(?=\d)/, '_');
  if (name.length > 128) {
    throw new SandboxerError('SBX_INVALID_REQUEST', 'The key of a secret is too long to be its name.', {
      field,
      remedy: 'Send a whole reference: { "name", "provider", "key" }.',
    });
  }
  return { name, provider, ...(name === key ? {} : { key }), delivery: 'broker' };
}

function refuseDelivery(ref: SecretRef, field: string): never {
  throw new SandboxerError(
    'SBX_SECRET_DELIVERY',
    `A request cannot have ${ref.name} delivered as "${ref.delivery}": that exposes its value.`,
    { field: `${field}.delivery`, remedy: 'Leave out the delivery, or have the profile declare it.' },
  );
}

function refuseUndeclared(profile: Profile, ref: SecretRef, field: string): never {
  const names = profile.setup.secret_refs.map(({ name }) => name);
  throw new SandboxerError('SBX_INVALID_REQUEST', `${profile.id} does not declare the secret ${ref.name}.`, {
    field,
    remedy:
      names.length > 0
        ? `Name one of ${names.join(', ')}, or use a profile with "request_secrets: any".`
        : 'Leave it out, or use a profile that declares it or has "request_secrets: any".',
  });
}

function refuseAmbiguous(ref: SecretRef, field: string): never {
  throw new SandboxerError('SBX_INVALID_REQUEST', `Two different secrets would be called ${ref.name}.`, {
    field,
    remedy: 'Send whole references with different names.',
  });
}
