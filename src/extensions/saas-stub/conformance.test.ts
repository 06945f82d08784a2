import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { describeConformance } from '../../testing/conformance.ts';
import { createSaasStubExtension } from './create.ts';
import { processesOf } from './server/process-tree.ts';
import { startStubServer } from './server/start-server.ts';

const directory = mkdtempSync(join(tmpdir(), 'sandboxer-stub-'));
afterAll(() => rmSync(directory, { recursive: true }));

const KEY = 'conformance-key-0001';

describeConformance({ describe, it, beforeAll, afterAll }, 'ext.saas-stub', {
  key: KEY,
  async create() {
    const stub = await startStubServer({ directory, keys: [KEY] });
    const extension = createSaasStubExtension({ transport: stub.transport(), pageSize: 2 });
    return { extension, cleanup: () => stub.stop() };
  },
  async hostSnapshot() {
    const kept = ['objects', 'snapshots'].flatMap((name) => {
      return readdirSync(directory).includes(name) ? readdirSync(join(directory, name)) : [];
    });
    return JSON.stringify({ kept, processes: processesOf({ marker: 'SANDBOXER_STUB_NONE', directory }) });
  },
});
