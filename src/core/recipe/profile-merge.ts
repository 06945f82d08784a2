/** A profile or an override as it was written, before the schema has seen it. */
export type RawDocument = Readonly<Record<string, unknown>>;

export interface OverrideLayer {
  readonly document: RawDocument;
  /** The priority: a higher layer wins; equal ones apply in the order they are given. */
  readonly priority: number;
}

/** The fields that make an override an override are no part of the profile it changes. */
const HEADER: ReadonlySet<string> = new Set(['kind', 'id', 'version', 'priority']);

/**
 * Base and overrides as one document: maps merge, lists and scalars replace, and `null` takes a value back to the
 * default of the schema.
 */
export function mergeProfile(base: RawDocument, overrides: readonly OverrideLayer[]): RawDocument {
  return [...overrides]
    .sort((left, right) => left.priority - right.priority)
    .reduce<RawDocument>((merged, { document }) => {
      const changes = Object.entries(document).filter(([key]) => !HEADER.has(key));
      return mergeMap(merged, Object.fromEntries(changes));
    }, base);
}

function mergeMap(base: RawDocument, change: RawDocument): RawDocument {
  const merged = new Map(Object.entries(base));
  for (const [key, value] of Object.entries(change)) {
    if (value === null) merged.delete(key);
    else merged.set(key, mergeValue(merged.get(key), value));
  }
  return Object.fromEntries(merged);
}

function mergeValue(base: unknown, value: unknown): unknown {
  if (!isMap(value)) return value;
  return mergeMap(isMap(base) ? base : {}, value);
}

function isMap(value: unknown): value is RawDocument {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
