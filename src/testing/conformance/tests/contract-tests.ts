import assert from 'node:assert/strict';
import { CapabilityVector } from '../../../contract/extensions/capability.ts';
import { ExtensionHealth } from '../../../contract/extensions/extension.ts';
import { Price } from '../../../contract/money/money.ts';
import { Reachability } from '../../../contract/sandboxes/sandbox.ts';
import { ExtensionId } from '../../../contract/values/ids.ts';
import { claimTests } from '../conformance-test.ts';
import { expectError } from '../expect-error.ts';

const test = claimTests('contract');

function sameWay(claimed: boolean, present: boolean, claim: string, member: string): void {
  if (claimed) assert.ok(present, `${claim} is declared, but there is no ${member}.`);
  else assert.ok(!present, `${member} exists, but ${claim} is not declared.`);
}

export const contractTests = [
  test('the header is valid', async ({ extension: { header } }) => {
    ExtensionId.parse(header.id);
    CapabilityVector.parse(header.capabilities);
    if (header.price !== null) Price.parse(header.price);
    assert.ok(header.title.length > 0, 'The title is empty.');
    assert.ok(Number.isInteger(header.handleVersion) && header.handleVersion >= 1, 'The handle version.');
    assert.ok(header.provisionTimeoutSeconds > 0, 'The provision timeout.');
    const charges = header.capabilities.pricing !== 'free';
    if (!charges) assert.equal(header.price, null, 'It is free and has a price.');
  }),

  test('what is declared exists, and nothing else does', async ({ extension, capabilities }) => {
    const has = (member: keyof typeof extension) => typeof extension[member] === 'function';
    for (const member of ['pause', 'resume'] as const) {
      sameWay(capabilities.pause !== 'none', has(member), 'pause', member);
    }
    for (const member of ['importImage', 'deleteImage'] as const) {
      sameWay(capabilities.images.includes('imported'), has(member), 'images: imported', member);
    }
    for (const member of ['createVolume', 'deleteVolume'] as const) {
      sameWay(capabilities.volumes === true, has(member), 'volumes', member);
    }
    for (const member of ['snapshot', 'deleteSnapshot', 'restore'] as const) {
      sameWay(capabilities.snapshot !== 'none', has(member), 'snapshot', member);
    }
    sameWay(capabilities.fork, has('fork'), 'fork', 'fork');
    sameWay(capabilities.dead_man === 'extendable', has('extendLife'), 'dead_man: extendable', 'extendLife');
  }),

  test('the session has what is declared, and nothing else', async (subject) => {
    const { session } = await subject.shared();
    const { capabilities } = subject;
    sameWay(capabilities.background, session.attach !== undefined, 'background', 'session.attach');
    sameWay(capabilities.background, session.processes !== undefined, 'background', 'session.processes');
    sameWay(capabilities.files, session.files !== undefined, 'files', 'session.files');
    sameWay(capabilities.watch, session.files?.watch !== undefined, 'watch', 'session.files.watch');
    sameWay(capabilities.services === true, session.services !== undefined, 'services', 'session.services');
    sameWay(capabilities.ports, session.dial !== undefined, 'ports', 'session.dial');
  }),

  test('the probe says healthy', async (subject) => {
    const health = ExtensionHealth.parse(await subject.extension.probe(subject.context()));
    assert.equal(health.status, 'healthy', health.detail);
  }),

  test('a key that the vendor takes passes, and one that it never gave is refused and not repeated', async (subject) => {
    const { extension, options } = subject;
    if (extension.checkKey === undefined || options.key === undefined) return;
    await extension.checkKey({ ...subject.context(), key: options.key });
    const unknown = `${options.key}-of-nobody`;
    const refused = await expectError(extension.checkKey({ ...subject.context(), key: unknown }), [
      'SBX_BACKEND_AUTH',
    ]);
    assert.ok(!JSON.stringify([refused.message, refused.detail, refused.extras]).includes(unknown));
    const provisioned = extension.provision(subject.spec(), { ...subject.context(), key: unknown });
    await expectError(provisioned, ['SBX_BACKEND_AUTH'], 'not_created');
  }),

  test('ready tells a valid reachability and a declared isolation', async (subject) => {
    const { handle } = await subject.shared();
    const ready = await subject.extension.waitReady(handle, subject.context());
    Reachability.parse(ready.reachability);
    assert.ok((subject.capabilities.isolation as string[]).includes(ready.isolation), ready.isolation);
  }),
];
