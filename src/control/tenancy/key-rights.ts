import { SandboxerError } from '../../contract/errors/errors.ts';
import type { Tx } from '../../core/ports/store/store.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import type { KeyRecord } from '../../core/tenancy/tenancy.ts';

/** Keys that keys made, one below the other: every level is looked at where budgets are. */
const MOST_LEVELS = 8;

/** Whether a caller could take a budget away: what it makes need not stay under one. */
function decidesAboutMoney({ actor, scopes }: Caller): boolean {
  return actor === 'adm' && (scopes.has('credits') || scopes.has('server'));
}

/** A key has as much as the caller, or less, in scopes and actor. */
export function requireNoMore(
  caller: Caller,
  wanted: Pick<KeyRecord, 'scopes' | 'actor'>,
  doing = 'makes',
): void {
  const beyond = wanted.scopes.filter((scope) => !caller.scopes.has('server') && !caller.scopes.has(scope));
  if (beyond.length === 0 && (wanted.actor !== 'adm' || caller.actor === 'adm')) return;
  const what = beyond.length > 0 ? `the scope "${beyond[0]}"` : 'the actor "adm"';
  throw new SandboxerError('SBX_FORBIDDEN', `A key ${doing} no key with more than it has: ${what}.`, {
    field: beyond.length > 0 ? 'scopes' : 'actor',
    remedy: 'Ask an administrator whose key has it.',
  });
}

/**
 * Returns the caller's own key as it is stored now; `null` for the local administrator. Refuses a key that has ended meanwhile.
 */
export async function ownKey(tx: Tx, { keyId }: Caller, now: number): Promise<KeyRecord | null> {
  if (keyId === null) return null;
  const key = await tx.tenancy.key(keyId);
  if (key && !hasEnded(key, now)) return key;
  throw new SandboxerError('SBX_UNAUTHENTICATED', 'The key has ended.');
}

export function hasEnded({ revokedAt, expiresAt }: KeyRecord, now: number): boolean {
  return revokedAt !== null || (expiresAt !== null && expiresAt <= now);
}

/** Returns when a key that `maker` makes ends: as asked for, or as `usual` says, and never after its maker. */
export function endOf(
  maker: KeyRecord | null,
  now: number,
  askedSeconds: number | undefined,
  usual: number | null,
): number | null {
  const limit = maker?.expiresAt ?? null;
  if (askedSeconds === undefined) return limit === null ? usual : Math.min(usual ?? limit, limit);
  const asked = now + askedSeconds * 1000;
  if (limit === null || asked <= limit) return asked;
  throw new SandboxerError(
    'SBX_FORBIDDEN',
    `A key makes no key that outlives it, and it ends at ${new Date(limit).toISOString()}.`,
    { field: 'expires_in', remedy: 'Leave "expires_in" out, or ask an administrator whose key ends later.' },
  );
}

/** The lines of a key that `maker` makes: its own, and below those of its maker. */
export function linesBelow(
  caller: Caller,
  maker: KeyRecord | null,
  id: string,
): Pick<KeyRecord, 'lines' | 'budgetLine'> {
  if (maker === null) return { lines: [id], budgetLine: id };
  if (maker.lines.length >= MOST_LEVELS) {
    throw new SandboxerError('SBX_FORBIDDEN', `Keys make keys ${MOST_LEVELS} levels deep, and no deeper.`, {
      remedy: 'Make the key with a key that is nearer to the first.',
    });
  }
  return { lines: [id, ...maker.lines], budgetLine: decidesAboutMoney(caller) ? id : maker.budgetLine };
}

/**
 * Refuses to hand out the secret of another key unless both spend alike: under the same budgets of keys and actors, or the
 * workspace has none of those.
 */
export async function requireSameBudgets(
  tx: Tx,
  caller: Caller,
  own: KeyRecord | null,
  wanted: Pick<KeyRecord, 'workspaceId' | 'actor' | 'lines'>,
): Promise<void> {
  if (own === null || decidesAboutMoney(caller)) return;
  const isBelow = wanted.lines.includes(own.lines[0]);
  const isSameActor = wanted.actor === own.actor;
  if (isBelow && isSameActor) return;
  const policy = await tx.ledger.policy(wanted.workspaceId);
  const escaped = policy?.budgets.find(
    ({ scope, value }) =>
      (scope === 'key' && !isBelow) ||
      (scope === 'actor' && !isSameActor && (value === null || value === own.actor)),
  );
  if (!escaped) return;
  throw new SandboxerError(
    'SBX_FORBIDDEN',
    `The key would not spend under the ${escaped.scope} budget ${escaped.id}, which your key is under.`,
    {
      field: escaped.scope === 'actor' ? 'actor' : 'key_id',
      remedy: 'Ask an administrator with the scope "credits".',
    },
  );
}
