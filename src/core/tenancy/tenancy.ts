import type { RouteCeiling } from '../../contract/routing/route.ts';
import type { KeyScope } from '../../contract/tenancy/tenancy.ts';
import type { Actor } from '../../contract/values/state.ts';

export interface OrgRecord {
  readonly id: string;
  readonly name: string;
  readonly createdAt: number;
  /** When the org was deleted. The row stays, so that its id is never given again. */
  readonly deletedAt?: number;
}

export interface WorkspaceRecord {
  readonly id: string;
  readonly orgId: string;
  readonly name: string;
  readonly createdAt: number;
  /** Absent: every backend is allowed. */
  readonly policy?: RouteCeiling;
  /** When the workspace was deleted. The row stays, so that its id is never given again. */
  readonly deletedAt?: number;
}

export interface KeyRecord {
  readonly id: string;
  readonly workspaceId: string;
  readonly name: string;
  /** SHA-256 of the secret, hex. The secret itself has 256 random bits, so no slow hash is needed. */
  readonly secretHash: string;
  /** A short name of the key for where its id is too long, such as the host name of a preview. Given once, from 1 on. */
  readonly number: number;
  /** The key it replaced; `null` for the first key of a line of succession. */
  readonly rotatedFrom: string | null;
  /** The key's line of succession, named by the line's first key, then the line of the key that made it, and so on. */
  readonly lines: readonly [string, ...string[]];
  /** The line that a budget of each key counts it under. */
  readonly budgetLine: string;
  readonly actor: Actor;
  readonly scopes: readonly KeyScope[];
  readonly createdAt: number;
  readonly expiresAt: number | null;
  readonly revokedAt: number | null;
  readonly lastUsedAt: number | null;
}
