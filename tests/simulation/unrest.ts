import { pendingOperation } from '../../src/core/lifecycle/sandbox.ts';
import type { StubWorld } from '../../src/extensions/saas-stub/world/world.ts';
import type { Mirror } from './mirror.ts';

/** What still goes on in the rows or at the backends; `null` when nothing does. */
export function unrestIn(mirror: Mirror, worlds: ReadonlyMap<string, StubWorld>): string | null {
  for (const row of mirror.unfinished.values()) {
    if (row.lease !== null) return `${row.uid} is leased to ${row.lease.owner}`;
    if (row.workDueAt !== null) return `${row.uid} is ${row.state} and has work due`;
    const operation = pendingOperation(row);
    if (operation) return `${row.uid} has a pending ${operation.kind}`;
  }
  for (const { id, state } of mirror.snapshots.values()) {
    if (state === 'creating' || state === 'deleting') return `${id} is ${state}`;
  }
  for (const world of worlds.values()) {
    for (const { name } of world.objects()) {
      if (mirror.attempts.get(name)?.state !== 'won') return `${name} is still there`;
    }
    const [volume] = world.volumes();
    if (volume) return `a volume of ${volume.name} is still there`;
  }
  return null;
}
