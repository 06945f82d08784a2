import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { inspect } from 'node:util';
import { CredentialDelivery } from '../../../contract/extensions/capability.ts';
import type { Log } from '../../../core/ports/log.ts';
import { claimTests } from '../conformance-test.ts';
import { expectError } from '../expect-error.ts';
import { runShell } from '../run-program.ts';
import type { Established } from '../subject.ts';

const test = claimTests('credentials', ({ credentials }) => credentials.length > 0);
const refusal = claimTests('refusal');

function secretValue(): string {
  return `s3cret-${randomBytes(12).toString('hex')}`;
}

async function insideAs(
  established: Established,
  name: string,
  delivery: CredentialDelivery,
): Promise<string> {
  const script =
    delivery === 'file' ? `cat "\${${name}_FILE:-/run/secrets/${name}}"` : `printf %s "$${name}"`;
  return (await runShell(established.session, script)).stdout.toString();
}

function secretBy(delivery: CredentialDelivery) {
  const value = secretValue();
  const name = `CONFORMANCE_${delivery.toUpperCase()}`;
  const secrets = [{ name, delivery, value }];
  const secretRefs = [{ name, provider: 'env', delivery }];
  return { name, value, parts: { secrets, recipe: { secretRefs } } };
}

export const secretTests = [
  ...(['env', 'file'] as const).map((delivery) =>
    test(
      `a secret is delivered by ${delivery}`,
      async (subject) => {
        const { name, value, parts } = secretBy(delivery);
        const established = await subject.establish(parts);
        assert.equal(await insideAs(established, name, delivery), value);
        await subject.teardown(established.spec);
      },
      { shell: true, applies: ({ credentials }) => credentials.includes(delivery) },
    ),
  ),

  test(
    'a brokered secret is not inside',
    async (subject) => {
      const { name, value, parts } = secretBy('broker');
      const established = await subject.establish(parts);
      assert.ok(
        !(await insideAs(established, name, 'env')).includes(value),
        'Its value is in the environment.',
      );
      assert.ok(!(await insideAs(established, name, 'file')).includes(value), 'Its value is in a file.');
      await subject.teardown(established.spec);
    },
    { shell: true, applies: ({ credentials }) => credentials.includes('broker') },
  ),

  test('a secret’s value appears nowhere outside', async (subject) => {
    for (const delivery of subject.capabilities.credentials) {
      const { value, parts } = secretBy(delivery);
      const said: unknown[] = [];
      const note = (fields: object, message: string) => void said.push(fields, message);
      const log: Log = { debug: note, info: note, warn: note, error: note };
      const spec = subject.spec({ ...parts, owner: `${subject.owner}-secret-${delivery}` });
      const handle = await subject.extension.provision(spec, { ...subject.context(), log });
      said.push(handle, await subject.extension.waitReady(handle, { ...subject.context(), log }));
      said.push(await subject.owned(spec.stamp.owner));
      const session = await subject.extension.connect(handle, { ...subject.context(), log });
      await session.close();
      if (subject.extension.snapshot !== undefined) {
        const snapshot = {
          snapshotId: `snap_${randomBytes(10).toString('hex')}`,
          name: null,
          owner: spec.stamp.owner,
        };
        const taken = await subject.extension.snapshot(handle, snapshot, { ...subject.context(), log });
        said.push(taken);
        await subject.extension.deleteSnapshot?.(taken.ref, snapshot, subject.context());
      }
      said.push(
        await subject.extension.teardown({ stamp: spec.stamp, handle }, { ...subject.context(), log }),
      );
      const gone = await subject.extension
        .connect(handle, subject.context())
        .catch((error: unknown) => error);
      said.push(gone);
      const everything = inspect(said, {
        depth: 20,
        maxStringLength: null,
        maxArrayLength: null,
        showHidden: true,
      });
      assert.ok(!everything.includes(value), `The value of a secret by ${delivery} is told.`);
    }
  }),

  refusal('a way of delivery that is not declared', async (subject) => {
    for (const delivery of CredentialDelivery.options) {
      if (subject.capabilities.credentials.includes(delivery)) continue;
      const { value, parts } = secretBy(delivery);
      const spec = subject.spec({ ...parts, owner: `${subject.owner}-undeclared-${delivery}` });
      const work = subject.extension.provision(spec, subject.context());
      const error = await expectError(work, ['SBX_SECRET_DELIVERY'], 'not_created');
      assert.ok(!inspect(error, { depth: 20 }).includes(value), 'The error tells the value.');
      assert.deepEqual(await subject.ownedAttempts(spec.stamp.owner), []);
    }
  }),
];
