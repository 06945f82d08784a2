import type { UnixClient } from '../../support/unix-client.ts';

/** What the server said it did, and must therefore still be true after any number of crashes. */
export interface Acknowledged {
  readonly created: Map<string, string>;
  readonly destroyed: Set<string>;
}

export interface LoadOptions {
  readonly client: UnixClient;
  readonly random: () => number;
  readonly acknowledged: Acknowledged;
  stopped(): boolean;
}

interface SandboxBody {
  readonly sandbox_id: string;
  readonly uid: string;
  readonly state: string;
}

const PROFILE = 'profile.stub-metered';

/** One lane of a busy client: it repeats what got no answer with the same key, as a real client would. */
export async function runLoad(options: LoadOptions, lane: number): Promise<number> {
  const { client, random, acknowledged } = options;
  let operations = 0;
  let mine: string[] = [];
  while (!options.stopped()) {
    operations += 1;
    const roll = random();
    try {
      if (roll < 0.45 || mine.length === 0) {
        const id = await createOne(options, lane, operations);
        if (id) mine.push(id);
        continue;
      }
      const id = mine[Math.floor(random() * mine.length)] as string;
      if (roll < 0.75) {
        const { status } = await client.call(
          'DELETE',
          `/v1/sandboxes/${id}${random() < 0.5 ? '?wait=none' : ''}`,
        );
        if (status === 200 || status === 202) {
          acknowledged.destroyed.add(id);
          mine = mine.filter((other) => other !== id);
        }
      } else if (roll < 0.82) await client.call('POST', `/v1/sandboxes/${id}/pause`, {});
      else if (roll < 0.88) await client.call('POST', `/v1/sandboxes/${id}/resume`, {});
      else if (roll < 0.92) await client.call('POST', `/v1/sandboxes/${id}/extend`, { ttl: '20m' });
      else if (roll < 0.95) await client.call('POST', `/v1/sandboxes/${id}/snapshots`, {});
      else if (roll < 0.97) await client.call('POST', `/v1/sandboxes/${id}/recreate?wait=none`, {});
      else await client.call('POST', `/v1/sandboxes/${id}/exec`, { command: ['/bin/echo', 'hello'] });
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 5 + random() * 20));
    }
  }
  return operations;
}

async function createOne(
  { client, random, acknowledged, stopped }: LoadOptions,
  lane: number,
  n: number,
): Promise<string | null> {
  const id = `k9-${lane}-${n}`;
  const wait = random() < 0.5 ? 'ready' : 'none';
  for (let tries = 0; tries < 40 && !stopped(); tries++) {
    try {
      const { status, body } = await client.call('POST', `/v1/sandboxes?wait=${wait}&timeout=10s`, {
        id,
        profile: PROFILE,
        ttl: '30m',
      });
      if (status >= 300) return null;
      const sandbox = JSON.parse(body) as SandboxBody;
      acknowledged.created.set(id, sandbox.uid);
      return id;
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 5 + random() * 20));
    }
  }
  return null;
}
