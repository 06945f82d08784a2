/** Runs with its temporary directory on a disk of its own. Prints what the kernel says of the weights of one sandbox. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Layout } from '../../../src/extensions/local/state/layout.ts';
import { LocalServer } from '../../support/local-server.ts';

const server = await LocalServer.start();
const { group } = new Layout(join(server.dir, 'local'));
const weight = (controller: string, file: string) => {
  const path = join('/sys/fs/cgroup', controller, group, file);
  return existsSync(path) ? Number(/\d+/.exec(readFileSync(path, 'utf8'))?.[0]) : null;
};
try {
  const { sandbox_id: id } = await server.client.sandboxes.create({ ttl: '5m' });
  const { not_enforced, limits } = await server.client.sandboxes.isolation(id);
  const { items } = await server.client.extensions.list();
  const check = items[0]?.health.checks.find(({ name }) => name === 'server before sandboxes');
  process.stdout.write(
    JSON.stringify({
      version: limits.version,
      competes: not_enforced.filter((text) => text.startsWith('It competes')),
      check: check?.detail,
      cpu: weight('cpu', 'cpu.shares') ?? weight('', 'cpu.weight'),
      io: weight('blkio', 'blkio.bfq.weight') ?? weight('', 'io.bfq.weight'),
      works: await server.inside(id, 'head -c 1M /dev/urandom >file; wc -c <file'),
    }),
  );
} finally {
  await server.close();
}
