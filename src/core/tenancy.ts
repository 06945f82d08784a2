import type { RouteCeiling } from '../contract/route.ts';
import type { Actor } from '../contract/state.ts';
import type { KeyScope } from '../contract/tenancy.ts';

export interface OrgRecord {
  readonly id: string;
  readonly name: string;
  readonly createdAt: number;
  /** Kept, so that its id is never given again. */
  readonly deletedAt?: number;
}

export interface WorkspaceRecord {
  readonly id: string;
  readonly orgId: string;
  readonly name: string;
  readonly createdAt: number;
  /** Absent: every backend is allowed. */
  readonly policy?: RouteCeiling;
  /** Kept, so that its id is never given again. */
  readonly deletedAt?: number;
}

export interface KeyRecord {
  readonly id: string;
  readonly workspaceId: string;
  readonly name: string;
  /** SHA-256 of the secret, hex. The secret itself has 256 random bits, so no slow hash is needed. */
  readonly secretHash: string;
  readonly actor: Actor;
  readonly scopes: readonly KeyScope[];
  readonly createdAt: number;
  readonly expiresAt: number | null;
  readonly revokedAt: number | null;
  readonly lastUsedAt: number | null;
}
