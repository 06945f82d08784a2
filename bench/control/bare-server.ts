/** Baseline: Fastify and bare durable SQLite commits, as many as a create makes, and nothing else. */
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import fastify from 'fastify';

const dir = process.env.SANDBOXER_STATE_DIR as string;
const database = new DatabaseSync(join(dir, 'bare.db'));
database.exec(
  'PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE rows (id INTEGER PRIMARY KEY, document TEXT)',
);
const begin = database.prepare('BEGIN IMMEDIATE');
const commit = database.prepare('COMMIT');
const insert = database.prepare('INSERT INTO rows (document) VALUES (?)');
const document = JSON.stringify({ text: 'x'.repeat(1000) });

const app = fastify({ logger: false });
app.post('/commits/:count', async (request) => {
  const count = Number((request.params as { count: string }).count);
  for (let done = 0; done < count; done++) {
    begin.run();
    insert.run(document);
    commit.run();
  }
  return { committed: count, echo: document };
});
await app.listen({ path: process.env.SANDBOXER_SOCKET as string });
process.stdout.write('ready\n');
process.once('SIGTERM', () => process.exit(0));
