import { describe, expect, it } from 'vitest';
import type { Clock } from '../../../core/ports/clock.ts';
import { Subject } from '../../../testing/conformance/subject.ts';
import { conformanceSuite } from '../../../testing/conformance.ts';
import type { SaasStubOptions } from '../config.ts';
import { DEFAULT_PRICE } from '../config.ts';
import { createSaasStubExtension } from '../create.ts';
import type { FaultRule } from '../wire/protocol.ts';
import { StubWorld } from './world.ts';
import { WorldTransport } from './world-transport.ts';

/** A clock that jumps to the next sleeper when there is nothing else to do. */
class JumpingClock implements Clock {
  #now = 1_000_000;
  readonly #sleepers = new Set<{ at: number; wake: () => void }>();

  now(): number {
    return this.#now;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const sleeper = { at: this.#now + ms, wake: resolve };
      this.#sleepers.add(sleeper);
      const abort = () => {
        this.#sleepers.delete(sleeper);
        reject(signal?.reason);
      };
      signal?.addEventListener('abort', abort, { once: true });
      setImmediate(() => this.#jump());
    });
  }

  #jump(): void {
    const [first] = [...this.#sleepers].sort((a, b) => a.at - b.at);
    if (first === undefined) return;
    this.#now = Math.max(this.#now, first.at);
    this.#sleepers.delete(first);
    first.wake();
  }
}

function stub(options: Partial<SaasStubOptions> = {}, faults: FaultRule[] = []) {
  const clock = new JumpingClock();
  const world = new StubWorld({ clock, createMs: 700, deleteMs: 300, faults });
  const extension = createSaasStubExtension({ transport: new WorldTransport(world, clock), ...options });
  const create = async () => ({ extension, cleanup: async () => {} });
  return { clock, world, extension, subject: new Subject(extension, { create, clock }) };
}

const WITHOUT_INSIDE = ['contract', 'lifecycle', 'abort', 'pause', 'refusal'];

describe('a stub in this process', () => {
  const { subject } = stub();
  const tests = conformanceSuite().filter(
    ({ claim, needsShell, applies }) =>
      WITHOUT_INSIDE.includes(claim) && !needsShell && applies(subject.extension.header.capabilities),
  );

  it.each(tests.map((test) => [test.name, test] as const))('conforms: %s', async (_, test) => {
    await test.run(subject);
  });

  it('a stub in this process declares no more of the inside than there is', () => {
    const { capabilities } = stub().extension.header;
    expect(capabilities).toMatchObject({
      exec: true,
      files: false,
      ports: false,
      background: false,
      watch: false,
    });
  });

  it('a stub in this process waits on its own clock', async () => {
    const { clock, subject: slow } = stub();
    const begun = clock.now();
    const { spec } = await slow.establish();
    expect(clock.now() - begun).toBe(700);
    expect((await slow.teardown(spec)).gone).toBe(true);
    expect(clock.now() - begun).toBe(1_000);
  });

  it('a stub in this process waits no longer for an unending call than its limit', async () => {
    const { clock, subject: stuck } = stub({ teardownWaitMs: 4_000 }, [
      { op: 'delete', kind: 'stuck_teardown', params: {} },
    ]);
    const { spec } = await stuck.establish();
    const begun = clock.now();
    expect((await stuck.teardown(spec)).gone).toBe(false);
    expect(clock.now() - begun).toBe(4_000);
  });

  it('a stub in this process is cut off and hangs by a fault', async () => {
    const cut = stub({}, [{ op: 'create', kind: 'lost_reply', params: {} }]);
    const provision = cut.extension.provision(cut.subject.spec(), cut.subject.context());
    await expect(provision).rejects.toMatchObject({ extras: { creation: 'maybe_created' } });
    const silent = stub({}, [{ op: 'create', kind: 'lost_reply', params: { hang: true } }]);
    const abort = new AbortController();
    const work = silent.extension.provision(silent.subject.spec(), silent.subject.context(abort.signal));
    setTimeout(() => abort.abort(), 10);
    await expect(work).rejects.toMatchObject({
      code: 'SBX_CANCELLED',
      extras: { creation: 'maybe_created' },
    });
  });

  it('a stub in this process may be one of several', () => {
    const price = { ...DEFAULT_PRICE, version: 'b' };
    const { header } = stub({ id: 'ext.saas-stub#b', price, capabilities: { regions: ['eu'] } }).extension;
    expect(header).toMatchObject({ id: 'ext.saas-stub#b', price, capabilities: { regions: ['eu'] } });
  });
});
