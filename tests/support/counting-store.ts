import type { Store, Tx } from '../../src/core/ports/store/store.ts';

/** What was asked of a store: `label table.method`, in order. */
export interface CountingStore {
  readonly store: Store;
  readonly calls: string[];
}

/** A store that notes every call, so that two requests can be seen to have gone the same way. */
export function countingStore(inner: Store): CountingStore {
  const calls: string[] = [];
  const watched = (tx: Tx, label: string): Tx =>
    new Proxy(tx, {
      get(target, name) {
        const table = target[name as keyof Tx] as object;
        if (typeof table === 'function') return table.bind(target);
        return new Proxy(table, {
          get(repository, method) {
            const call = repository[method as never] as unknown;
            if (typeof call !== 'function') return call;
            return (...args: unknown[]) => {
              calls.push(`${label} ${String(name)}.${String(method)}`);
              return call.apply(repository, args);
            };
          },
        });
      },
    });
  const store: Store = {
    exclusive: inner.exclusive,
    transaction: (label, work) => inner.transaction(label, (tx) => work(watched(tx, label))),
    read: (label, work) => inner.read(label, (tx) => work(watched(tx, label))),
    onCommit: (listener) => inner.onCommit(listener),
    close: () => inner.close(),
  };
  return { store, calls };
}
