/** Sandboxes with real processes and files behind the API: the stub server runs them as children of its own. */
import { createSaasStubExtension } from '../../../src/extensions/saas-stub/create.ts';
import { startStubServer } from '../../../src/extensions/saas-stub/server/start-server.ts';
import type { Fixture, FixtureOptions } from './fixture.ts';
import { LIVE_PROFILE, startFixture } from './fixture.ts';

export async function startLiveFixture(options: FixtureOptions = {}): Promise<Fixture> {
  const stub = await startStubServer();
  const transport = stub.transport();
  const f = await startFixture({
    ...options,
    extensions: [createSaasStubExtension({ transport, price: null })],
  });
  return {
    ...f,
    create: (profile = LIVE_PROFILE.id) => f.create(profile),
    async close() {
      await f.close();
      await transport.close?.();
      await stub.stop();
    },
  };
}

/** Waits for something to become true. */
export async function until(holds: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const deadline = Date.now() + 30_000;
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(`it never came to this: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
