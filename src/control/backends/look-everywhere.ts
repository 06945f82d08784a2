import { SandboxerError } from '../../contract/errors/errors.ts';
import type {
  Extension,
  ExtensionContext,
  Owned,
  OwnedSnapshot,
  Unowned,
} from '../../core/ports/extension.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
import { contextFor } from './backend-context.ts';
import { within } from './within.ts';

/** A place whose objects a backend lists: one of our hosts, or one account at the vendor. */
interface Place {
  readonly hostId: string | null;
  readonly providerKeyId: string | null;
}

/** An object at a backend, and the place where it was found. */
export type Found<T> = T & Place;

export interface Everywhere<T> {
  readonly all: readonly Found<T>[];
  /** The places that did not answer, by name, with their errors. */
  readonly unseen: ReadonlyMap<string, string>;
}

type Listing<T> = (context: ExtensionContext) => AsyncIterable<T>;

const ITSELF: Place = { hostId: null, providerKeyId: null };

/** The host, or the key; the backend's own configuration has no name. */
export function placeName({ hostId, providerKeyId }: Place): string {
  return hostId ?? providerKeyId ?? '';
}

async function placesOf(deps: ControlPorts, { header, checkKey }: Extension): Promise<readonly Place[]> {
  if (header.runsOn === 'hosts') {
    const hosts = await deps.store.read('hosts', (tx) => tx.hosts.list());
    const targets = hosts.filter(({ spec }) => spec.class === 'sandbox' && spec.ssh !== null);
    return targets.map(({ id }) => ({ hostId: id, providerKeyId: null }));
  }
  if (checkKey === undefined) return [ITSELF];
  const keys = await deps.store.read('provider-keys', (tx) => tx.providerKeys.list());
  const own = keys.filter(({ extensionId }) => extensionId === header.id);
  return [ITSELF, ...own.map(({ id }) => ({ hostId: null, providerKeyId: id }))];
}

/**
 * Lists the objects of all places. A place that does not answer hides only its own objects; if it is the only place, that is an
 * error.
 */
async function lookEverywhere<T>(
  deps: ControlPorts,
  extension: Extension,
  listing: Listing<T>,
  signal: AbortSignal,
): Promise<Everywhere<T>> {
  const at = (place: Place) =>
    within(deps, deps.settings.operationTimeoutMs, signal, async (given) => {
      const all: Found<T>[] = [];
      const context = await contextFor(deps, place.hostId, given, place.providerKeyId);
      for await (const one of listing(context)) all.push({ ...one, ...place });
      return all;
    });
  const places = await placesOf(deps, extension);
  if (places.length === 1 && places[0] === ITSELF) return { all: await at(ITSELF), unseen: new Map() };
  const unseen = new Map<string, string>();
  const lists = await Promise.all(
    places.map((place) =>
      at(place).catch((error: unknown) => {
        const { hostId: host, providerKeyId } = place;
        const subject = { host, provider_key: providerKeyId, extension: extension.header.id };
        deps.log.warn({ err: error, ...subject }, 'a place was not looked at');
        const why = error instanceof SandboxerError ? error.detail : 'It could not be looked at.';
        unseen.set(placeName(place), why);
        return [];
      }),
    ),
  );
  signal.throwIfAborted();
  return { all: lists.flat(), unseen };
}

/** Lists our objects at a backend. Two keys of one account see the same objects: each is listed once. */
export async function ownedEverywhere(
  deps: ControlPorts,
  extension: Extension,
  signal: AbortSignal,
): Promise<Everywhere<Owned>> {
  const listing: Listing<Owned> = (context) => extension.listOwned(deps.owner, context);
  const { all, unseen } = await lookEverywhere(deps, extension, listing, signal);
  return { all: [...new Map(all.map((found) => [found.stamp.attemptId, found])).values()], unseen };
}

export async function snapshotsEverywhere(
  deps: ControlPorts,
  extension: Extension,
  signal: AbortSignal,
): Promise<Everywhere<OwnedSnapshot>> {
  const { listSnapshots } = extension;
  if (listSnapshots === undefined) return { all: [], unseen: new Map() };
  const listing: Listing<OwnedSnapshot> = (context) => listSnapshots.call(extension, deps.owner, context);
  const { all, unseen } = await lookEverywhere(deps, extension, listing, signal);
  return { all: [...new Map(all.map((found) => [found.snapshotId, found])).values()], unseen };
}

/** Lists objects at a backend that carry a mark like ours and are not ours. */
export async function unownedEverywhere(
  deps: ControlPorts,
  extension: Extension,
  signal: AbortSignal,
): Promise<Everywhere<Unowned>> {
  if (extension.listUnowned === undefined) return { all: [], unseen: new Map() };
  const listing: Listing<Unowned> = (context) =>
    (extension.listUnowned as NonNullable<Extension['listUnowned']>)(deps.owner, context);
  return lookEverywhere(deps, extension, listing, signal);
}
