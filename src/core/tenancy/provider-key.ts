/** The payer of an attempt: our customer's credits, or the customer's own account at the vendor. */
export type Payer = 'credits' | 'own_key';

/** A key of a vendor, sealed. There is one for each workspace and backend, and one of the platform for each backend. */
export interface ProviderKeyRecord {
  readonly id: string;
  /** `null`: the platform's own, for every workspace that has none. */
  readonly workspaceId: string | null;
  readonly extensionId: string;
  /** For compare-and-set; counts up with every change. */
  readonly version: number;
  readonly label: string;
  /** The key, sealed with the server's master key. */
  readonly sealed: string;
  /** The last characters of the key, for readers to tell keys apart. */
  readonly hint: string;
  readonly state: 'active' | 'refused' | 'disabled';
  readonly createdAt: number;
  readonly checkedAt: number;
  readonly refusedAt: number | null;
}

/** Returns the context that a provider key is sealed for. */
export function keyContext(id: string): string {
  return `provider-key:${id}`;
}

const HINT_LENGTH = 4;

export function hintOf(secret: string): string {
  return secret.slice(-HINT_LENGTH);
}

/** The key that an attempt would use, as a decision sees it. */
export interface KeyChoice {
  readonly id: string;
  readonly scope: 'workspace' | 'platform';
  readonly usable: boolean;
}

/**
 * A workspace that brought its own key uses that one or none: it is never charged for the platform's because its own was
 * refused. By extension.
 */
export function chooseKeys(keys: readonly ProviderKeyRecord[]): Readonly<Record<string, KeyChoice>> {
  const chosen: Record<string, KeyChoice> = {};
  for (const { id, workspaceId, extensionId, state } of keys) {
    if (workspaceId === null && chosen[extensionId]?.scope === 'workspace') continue;
    const scope = workspaceId === null ? 'platform' : 'workspace';
    chosen[extensionId] = { id, scope, usable: state === 'active' };
  }
  return chosen;
}
