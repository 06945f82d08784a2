import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { TestServer } from '../../support/test-server.ts';

const LISTENS = 'tracing:net.server.listen:asyncStart';

it('first start: admin.key is there before anything listens on TCP, and before /readyz answers 200', async () => {
  const server = new TestServer(({ listen }) => ({ listen: { ...listen, tcp: '127.0.0.1:0' } }));
  const onTcp: boolean[] = [];
  const listens = (message: unknown) => {
    if ('port' in (message as { options: object }).options)
      onTcp.push(existsSync(join(server.dir, 'admin.key')));
  };
  subscribe(LISTENS, listens);
  try {
    await server.start();
    expect(onTcp).toEqual([true]);
    expect((await server.call('GET', '/readyz')).status).toBe(200);
  } finally {
    unsubscribe(LISTENS, listens);
    await server.close();
  }
}, 60_000);
