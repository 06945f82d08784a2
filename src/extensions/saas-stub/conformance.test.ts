import { afterAll, beforeAll, describe, it } from 'vitest';
import { describeConformance } from '../../testing/conformance.ts';
import { createSaasStubExtension } from './index.ts';
import { startStubServer } from './start-server.ts';

describeConformance({ describe, it, beforeAll, afterAll }, 'ext.saas-stub', {
  async create() {
    const stub = await startStubServer();
    const extension = createSaasStubExtension({ transport: stub.transport(), pageSize: 2 });
    return { extension, cleanup: () => stub.stop() };
  },
});
