import { SandboxerError } from '../contract/errors.ts';
import type { Extension, ExtensionContext, Owned, Unowned } from '../core/extension.ts';
import type { ControlDeps } from './deps.ts';
import { contextFor } from './perform-step.ts';
import { within } from './within.ts';

/** Something at a backend, and the host it was found on. */
export type Found<T> = T & { readonly hostId: string | null };

export interface Everywhere<T> {
  readonly all: readonly Found<T>[];
  /** Hosts that did not answer, and what they said instead. */
  readonly unseen: ReadonlyMap<string, string>;
}

type Listing<T> = (context: ExtensionContext) => AsyncIterable<T>;

/** One host that does not answer hides only what is on it. */
async function lookEverywhere<T>(
  deps: ControlDeps,
  extension: Extension,
  listing: Listing<T>,
  signal: AbortSignal,
): Promise<Everywhere<T>> {
  const on = (hostId: string | null) =>
    within(deps, deps.settings.operationTimeoutMs, signal, async (given) => {
      const all: Found<T>[] = [];
      const context = await contextFor(deps, hostId, given);
      for await (const one of listing(context)) all.push({ ...one, hostId });
      return all;
    });
  if (extension.header.runsOn !== 'hosts') return { all: await on(null), unseen: new Map() };
  const hosts = await deps.store.read('hosts', (tx) => tx.hosts.list());
  const targets = hosts.filter(({ spec }) => spec.class === 'sandbox' && spec.ssh !== null);
  const unseen = new Map<string, string>();
  const lists = await Promise.all(
    targets.map(({ id }) =>
      on(id).catch((error: unknown) => {
        deps.log.warn({ err: error, host: id, extension: extension.header.id }, 'a host was not looked at');
        unseen.set(id, error instanceof SandboxerError ? error.detail : 'It could not be looked at.');
        return [];
      }),
    ),
  );
  signal.throwIfAborted();
  return { all: lists.flat(), unseen };
}

/** What is ours at a backend. */
export function ownedEverywhere(
  deps: ControlDeps,
  extension: Extension,
  signal: AbortSignal,
): Promise<Everywhere<Owned>> {
  return lookEverywhere(deps, extension, (context) => extension.listOwned(deps.owner, context), signal);
}

/** What is marked like ours at a backend, and is not. */
export async function unownedEverywhere(
  deps: ControlDeps,
  extension: Extension,
  signal: AbortSignal,
): Promise<Everywhere<Unowned>> {
  if (extension.listUnowned === undefined) return { all: [], unseen: new Map() };
  const listing: Listing<Unowned> = (context) =>
    (extension.listUnowned as NonNullable<Extension['listUnowned']>)(deps.owner, context);
  return lookEverywhere(deps, extension, listing, signal);
}
