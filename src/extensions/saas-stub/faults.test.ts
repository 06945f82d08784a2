import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ErrorCode } from '../../contract/errors/errors.ts';
import { SandboxerError } from '../../contract/errors/errors.ts';
import type { Creation } from '../../contract/values/state.ts';
import type { Extension, ProvisionSpec } from '../../core/ports/extension.ts';
import { Subject } from '../../testing/conformance/subject.ts';
import { createSaasStubExtension } from './create.ts';
import type { FaultInput, RunningStub } from './server/start-server.ts';
import { startStubServer } from './server/start-server.ts';
import { FAULT_KINDS } from './wire/protocol.ts';

const webhooks: { id: string; name: string }[] = [];
const listener = createServer(async (request, response) => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  webhooks.push(JSON.parse(Buffer.concat(chunks).toString()));
  response.end();
});
let stub: RunningStub;
let extension: Extension;
let subject: Subject;
const proven = new Set<string>();

beforeAll(async () => {
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const webhookUrl = `http://127.0.0.1:${(listener.address() as AddressInfo).port}/`;
  stub = await startStubServer({ webhookUrl });
  extension = createSaasStubExtension({ transport: stub.transport(400), teardownWaitMs: 300 });
  subject = new Subject(extension, { create: async () => ({ extension, cleanup: async () => {} }) });
});

afterAll(async () => {
  await stub.setFaults();
  await subject.sweep();
  await extension.close?.();
  await stub.stop();
  listener.close();
});

/** Returns the spec of a sandbox with its own faults, as a request of a demo has. */
function specWith(...rules: FaultInput[]): ProvisionSpec {
  for (const { kind } of rules) proven.add(kind);
  return subject.spec({ recipe: { inputs: { fault: rules as never } } });
}

async function provision(spec: ProvisionSpec): Promise<unknown> {
  return await extension.provision(spec, subject.context()).catch((error: unknown) => error);
}

async function exists(spec: ProvisionSpec): Promise<boolean> {
  return (await stub.objects()).objects.some(({ name }) => name === spec.stamp.attemptId);
}

async function expectFailure(spec: ProvisionSpec, code: ErrorCode, creation: Creation, there: boolean) {
  const error = await provision(spec);
  expect(error).toBeInstanceOf(SandboxerError);
  const { code: got, extras } = error as SandboxerError;
  expect({ code: got, creation: extras.creation, backend: extras.backend }).toEqual({
    code,
    creation,
    backend: 'ext.saas-stub',
  });
  expect(await exists(spec)).toBe(there);
  return extras;
}

describe('a create that fails', () => {
  it('a create fails before anything was made, without saying so', async () => {
    const spec = specWith({ op: 'create', kind: 'error_before' });
    await expectFailure(spec, 'SBX_EXTENSION_FAILED', 'maybe_created', false);
  });

  it('a create fails before anything was made, and says so', async () => {
    const spec = specWith({ op: 'create', kind: 'error_before', params: { says: true } });
    await expectFailure(spec, 'SBX_EXTENSION_FAILED', 'not_created', false);
  });

  it('a create fails after it was made, without saying so', async () => {
    const spec = specWith({ op: 'create', kind: 'error_after' });
    await expectFailure(spec, 'SBX_EXTENSION_FAILED', 'maybe_created', true);
  });

  it('a create fails after it was made, and says so', async () => {
    const spec = specWith({ op: 'create', kind: 'error_after', params: { says: true } });
    await expectFailure(spec, 'SBX_EXTENSION_FAILED', 'created', true);
  });

  it('a create fails because the connection is cut', async () => {
    const spec = specWith({ op: 'create', kind: 'lost_reply' });
    await expectFailure(spec, 'SBX_EXTENSION_FAILED', 'maybe_created', true);
  });

  it('a create fails because the reply never comes', async () => {
    const spec = specWith({ op: 'create', kind: 'lost_reply', params: { hang: true } });
    await expectFailure(spec, 'SBX_EXTENSION_FAILED', 'maybe_created', true);
  });

  it('a create fails because the reply comes too late', async () => {
    const spec = specWith({ op: 'create', kind: 'slow', params: { ms: 2_000 } });
    await expectFailure(spec, 'SBX_EXTENSION_FAILED', 'maybe_created', true);
  });

  it('a create that fails may leave an object that appears later', async () => {
    const spec = specWith({ op: 'create', kind: 'late_create', params: { ms: 300 } });
    await expectFailure(spec, 'SBX_EXTENSION_FAILED', 'maybe_created', false);
    expect((await subject.teardown(spec)).gone).toBe(true);
    expect(await subject.eventually(() => exists(spec))).toBe(true);
    expect(await subject.ownedAttempts()).toContain(spec.stamp.attemptId);
  });

  it('a create fails for too many requests', async () => {
    const spec = specWith({ op: 'create', kind: 'rate_limited', params: { retry_after_seconds: 7 } });
    const extras = await expectFailure(spec, 'SBX_BACKEND_QUOTA', 'not_created', false);
    expect(extras.retryAfterSeconds).toBe(7);
  });

  it('a create fails for want of capacity', async () => {
    await expectFailure(specWith({ op: 'create', kind: 'quota' }), 'SBX_BACKEND_QUOTA', 'not_created', false);
  });

  it('a create fails for a bad key', async () => {
    await expectFailure(specWith({ op: 'create', kind: 'auth' }), 'SBX_BACKEND_AUTH', 'not_created', false);
  });

  it('a create fails because no server listens', async () => {
    const { HttpTransport } = await import('./wire/http-transport.ts');
    const transport = new HttpTransport({ baseUrl: 'http://127.0.0.1:1', key: 'k' });
    const nowhere = createSaasStubExtension({ transport });
    const error = await nowhere
      .provision(subject.spec(), subject.context())
      .catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'SBX_EXTENSION_FAILED', extras: { creation: 'not_created' } });
    expect(await nowhere.probe(subject.context())).toMatchObject({ status: 'undetected' });
  });

  it('a create fails because its fault is unknown', async () => {
    const spec = subject.spec({ recipe: { inputs: { fault: { op: 'create', kind: 'meteorite' } } } });
    const error = await provision(spec);
    expect(error).toMatchObject({ code: 'SBX_INVALID_REQUEST', extras: { field: 'inputs.fault.0.kind' } });
  });

  it('a create fails only as often as the fault is set to', async () => {
    const spec = specWith({ op: 'create', kind: 'quota', times: 1 });
    await expectFailure(spec, 'SBX_BACKEND_QUOTA', 'not_created', false);
    expect(await provision(spec)).toMatchObject({ version: 1 });
  });

  it('a create fails only at the backend that the fault names', async () => {
    const spec = specWith({ op: 'create', kind: 'quota', match: { extension: 'ext.saas-stub#b' } });
    expect(await provision(spec)).toMatchObject({ version: 1 });
  });
});

describe('a life that goes wrong', () => {
  it('a sandbox with a fault in its life never runs', async () => {
    const spec = specWith({ op: 'create', kind: 'stuck_provisioning' });
    const handle = await extension.provision(spec, subject.context());
    const work = extension.waitReady(handle, subject.context(AbortSignal.timeout(200)));
    await expect(work).rejects.toMatchObject({ code: 'SBX_TIMEOUT' });
    expect((await subject.teardown(spec)).gone).toBe(true);
  });

  it('a sandbox with a fault in its life disappears', async () => {
    const spec = specWith({ op: 'create', kind: 'disappears', params: { ms: 200 } });
    const handle = await extension.provision(spec, subject.context());
    expect(await subject.eventually(async () => !(await exists(spec)))).toBe(true);
    await expect(extension.connect(handle, subject.context())).rejects.toMatchObject({
      code: 'SBX_BACKEND_LOST',
    });
    await expect(extension.pause?.(handle, subject.context())).rejects.toMatchObject({
      code: 'SBX_BACKEND_LOST',
    });
    expect((await subject.teardown(spec)).gone).toBe(true);
  });

  it('a sandbox ends early by a clock that is off', async () => {
    const spec = specWith({ op: 'create', kind: 'skewed_clock', params: { ms: 600_000 - 300 } });
    await extension.provision(spec, subject.context());
    expect(await subject.eventually(async () => !(await exists(spec)))).toBe(true);
  });

  it('a sandbox is missing for a command', async () => {
    const spec = specWith({ op: 'exec', kind: 'error_before', times: 1 });
    const handle = await extension.provision(spec, subject.context());
    await expect(extension.waitReady(handle, subject.context())).rejects.toMatchObject({
      code: 'SBX_EXTENSION_FAILED',
    });
    await extension.waitReady(handle, subject.context());
  });
});

describe('a teardown that goes wrong', () => {
  it('a stuck teardown is reported, and works when it is repeated', async () => {
    const spec = specWith({ op: 'delete', kind: 'stuck_teardown', times: 1 });
    await extension.provision(spec, subject.context());
    const first = await subject.teardown(spec);
    expect(first).toMatchObject({ gone: false, remaining: [{ what: `sandbox ${spec.stamp.attemptId}` }] });
    expect(await subject.ownedAttempts()).toContain(spec.stamp.attemptId);
    expect((await subject.teardown(spec)).gone).toBe(true);
  });

  it('a failed teardown leaves a volume for two more', async () => {
    const spec = specWith({ op: 'delete', kind: 'partial_teardown', times: 1, params: { deletes: 2 } });
    await extension.provision(spec, subject.context());
    const partial = { gone: false, remaining: [{ what: `volume of ${spec.stamp.attemptId}` }] };
    expect(await subject.teardown(spec)).toMatchObject(partial);
    expect(await subject.ownedAttempts()).toContain(spec.stamp.attemptId);
    expect(await subject.teardown(spec)).toMatchObject(partial);
    expect((await subject.teardown(spec)).gone).toBe(true);
    expect(await subject.ownedAttempts()).not.toContain(spec.stamp.attemptId);
  });

  it.each(['error_before', 'error_after', 'lost_reply'] as const)(
    'a teardown that goes wrong fails by %s, and works when it is repeated',
    async (kind) => {
      const spec = specWith({ op: 'delete', kind, times: 1 });
      await extension.provision(spec, subject.context());
      await expect(subject.teardown(spec)).rejects.toMatchObject({ code: 'SBX_EXTENSION_FAILED' });
      expect((await subject.teardown(spec)).gone).toBe(true);
    },
  );

  it('a teardown is reported twice', async () => {
    const spec = specWith({ op: 'create', kind: 'duplicate_webhook' });
    await extension.provision(spec, subject.context());
    await subject.teardown(spec);
    const told = () => webhooks.filter(({ name }) => name === spec.stamp.attemptId).map(({ id }) => id);
    expect(await subject.eventually(async () => told().length === 2)).toBe(true);
    expect(new Set(told()).size).toBe(1);
  });
});

describe('a stub that goes down', () => {
  it('a stub that goes down has its whole state when it is back, and cleans up', async () => {
    const { spec, handle, files } = await subject.establish();
    await files.write(
      'kept',
      (async function* () {
        yield Buffer.from('kept');
      })(),
    );
    await stub.crash();
    await expect(extension.waitReady(handle, subject.context())).rejects.toMatchObject({
      code: 'SBX_EXTENSION_FAILED',
    });
    await stub.start();
    const { files: again } = await subject.open(spec, handle);
    expect((await again.stat('kept')).size).toBe(4);
    expect((await subject.teardown(spec)).gone).toBe(true);
  });
});

it('every kind of fault was tried', () => {
  expect([...proven].sort()).toEqual([...FAULT_KINDS].sort());
});
