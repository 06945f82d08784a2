import { join } from 'node:path';
import { SqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { sampleAttempt, sampleDocuments, sampleSandbox } from '../../src/store/suite/sample-records.ts';

const PER_COMMIT = 1_000;

/** Destroyed and active sandboxes with their documents and attempts, as a busy month leaves them. */
export async function fillStore(stateDir: string, count: number): Promise<void> {
  const store = await SqliteStore.open({ path: join(stateDir, 'sandboxer.db') });
  const now = Date.now();
  for (let from = 0; from < count; from += PER_COMMIT) {
    await store.transaction('fill', async (tx) => {
      for (let at = from; at < Math.min(from + PER_COMMIT, count); at++) {
        const uid = `sbx_fill${String(at).padStart(8, '0')}`;
        const createdAt = now - (count - at) * 1_000;
        const labels = { team: `team-${at % 10}`, run: String(at % 1000) };
        await tx.sandboxes.insert(
          sampleSandbox({
            uid,
            createdAt,
            labels,
            state: 'destroyed',
            stateSince: createdAt,
            lease: null,
            workDueAt: null,
            deadlineAt: createdAt + 3_600_000,
          }),
        );
        await tx.sandboxes.insertDocuments(sampleDocuments(uid));
        await tx.attempts.insert(sampleAttempt(uid, { state: 'gone' }));
      }
    });
  }
  await store.close();
}
