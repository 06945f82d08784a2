import { readFile } from 'node:fs/promises';
import { posix } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Extension, Handle, ProvisionSpec } from '../core/ports/extension.ts';
import type { SandboxSession } from '../core/ports/session.ts';
import { bytesFrom } from './conformance/bytes.ts';
import { SkippedTest } from './conformance/conformance-test.ts';
import { Subject } from './conformance/subject.ts';
import { conformanceSuite, runConformance } from './conformance.ts';
import { formatReport, isConforming } from './conformance-report.ts';
import { createMemoryExtension } from './memory/memory-extension.ts';

type Overrides = { [Member in keyof Extension]?: Extension[Member] | undefined };

/** Returns the backend in memory, with some of its members replaced. */
function broken(override: (good: Extension) => Overrides): Extension {
  const good = createMemoryExtension();
  const overrides = override(good);
  return new Proxy(good, {
    get(target, member: keyof Extension) {
      if (member in overrides) return overrides[member];
      const value = target[member];
      return typeof value === 'function' ? (value as () => unknown).bind(target) : value;
    },
  });
}

function withCapabilities(
  good: Extension,
  parts: Partial<Extension['header']['capabilities']>,
): Extension['header'] {
  return { ...good.header, capabilities: { ...good.header.capabilities, ...parts } };
}

async function withSession(
  good: Extension,
  handle: Handle,
  change: (session: SandboxSession) => Partial<SandboxSession>,
  ctx: Parameters<Extension['connect']>[1],
): Promise<SandboxSession> {
  const session = await good.connect(handle, ctx);
  return { ...session, ...change(session) };
}

async function verdict(extension: Extension, name: string): Promise<string | null> {
  const test = conformanceSuite().find((one) => one.name === name);
  if (test === undefined) throw new Error(`There is no test "${name}".`);
  if (!test.applies(extension.header.capabilities)) throw new Error(`"${name}" does not apply.`);
  const create = async () => ({ extension, cleanup: async () => {} });
  const subject = new Subject(extension, { create, abortWithinMs: 200, graceMs: 200, shell: false });
  return await test.run(subject).then(
    () => null,
    (error: unknown) => {
      if (error instanceof SkippedTest) throw error;
      return String(error);
    },
  );
}

const cases: [fault: string, test: string, extension: () => Extension][] = [
  [
    'a teardown that lies',
    'lifecycle: teardown removes it, and again is success',
    () => broken(() => ({ teardown: async () => ({ gone: true, removed: [], remaining: [] }) })),
  ],
  [
    'a teardown that needs the handle',
    'lifecycle: teardown works by the stamp alone',
    () =>
      broken((good) => ({
        teardown: async (target, ctx) =>
          target.handle === null
            ? { gone: true, removed: [], remaining: [] }
            : await good.teardown(target, ctx),
      })),
  ],
  [
    'a teardown that fails when there is nothing',
    'lifecycle: teardown of what never was is success',
    () => broken(() => ({ teardown: () => Promise.reject(new Error('not found')) })),
  ],
  [
    'a teardown that ignores the owner',
    'lifecycle: teardown does not touch another owner’s',
    () =>
      broken((good) => ({
        teardown: async ({ stamp, handle }, ctx) => {
          const owner = stamp.owner.replace(/-other$/, '-mine');
          return await good.teardown({ stamp: { ...stamp, owner }, handle }, ctx);
        },
      })),
  ],
  [
    'a provision that is not idempotent',
    'lifecycle: provision twice is one resource and one handle',
    () => broken((good) => ({ provision: unrepeatable(good) })),
  ],
  [
    'a provision that races with itself',
    'lifecycle: provision at the same time is one resource and one handle',
    () => broken((good) => ({ provision: unrepeatable(good) })),
  ],
  [
    'a list that hides',
    'lifecycle: listOwned shows exactly what is ours',
    () => broken(() => ({ listOwned: async function* () {} })),
  ],
  [
    'a list that shows others’',
    'lifecycle: listOwned shows exactly what is ours',
    () =>
      broken((good) => ({
        listOwned: async function* (owner, ctx) {
          yield* good.listOwned(owner, ctx);
          yield* good.listOwned(owner.replace(/-ours$/, '-others'), ctx);
        },
      })),
  ],
  [
    'a create that ignores its signal',
    'abort: a call that is aborted before it begins does nothing',
    () => broken(() => ({ provision: () => new Promise<never>(() => {}) })),
  ],
  [
    'an exec that loses the exit code',
    'exec: the exit code is the program’s own',
    () =>
      broken((good) => ({
        connect: (handle, ctx) =>
          withSession(
            good,
            handle,
            (session) => ({
              async spawn(spec, options) {
                const process = await session.spawn(spec, options);
                const exit = process.exit.then((status) => ({ ...status, code: 0 }));
                return Object.create(process, { exit: { value: exit }, output: { value: process.output } });
              },
            }),
            ctx,
          ),
      })),
  ],
  [
    'a claim without its method',
    'contract: what is declared exists, and nothing else does',
    () => broken(() => ({ fork: undefined })),
  ],
  [
    'a method without its claim',
    'contract: what is declared exists, and nothing else does',
    () => broken((good) => ({ header: withCapabilities(good, { pause: 'none' }) })),
  ],
  [
    'a session without what is claimed',
    'contract: the session has what is declared, and nothing else',
    () => broken((good) => ({ header: withCapabilities(good, { background: true }) })),
  ],
  [
    'a header that is not valid',
    'contract: the header is valid',
    () => broken((good) => ({ header: { ...good.header, id: 'memory' } })),
  ],
  [
    'a handle that tells a secret',
    'credentials: a secret’s value appears nowhere outside',
    () =>
      broken((good) => ({
        header: withCapabilities(good, { credentials: ['env'] }),
        provision: async (spec, ctx) => {
          const handle = await good.provision(withoutSecrets(spec), ctx);
          const leak = { toString: () => String(handle.data), value: spec.secrets[0]?.value ?? '' };
          return { ...handle, data: leak as never };
        },
      })),
  ],
  [
    'a delivery that is accepted and not declared',
    'refusal: a way of delivery that is not declared',
    () => broken((good) => ({ provision: (spec, ctx) => good.provision(withoutSecrets(spec), ctx) })),
  ],
  [
    'a wish that is accepted and cannot be met',
    'refusal: a stronger isolation than declared',
    () =>
      broken((good) => ({
        provision: (spec, ctx) =>
          good.provision({ ...spec, recipe: { ...spec.recipe, isolation: 'none' } }, ctx),
      })),
  ],
  [
    'files that reach the machine outside',
    'files: no .. leads out',
    () =>
      broken((good) => ({
        connect: (handle, ctx) =>
          withSession(
            good,
            handle,
            ({ files }) => ({
              files: Object.create(files ?? null, {
                read: {
                  value: async (path: string) => {
                    const content = await readFile(posix.resolve('/', path));
                    return { size: content.length, body: bytesFrom(content) };
                  },
                },
              }),
            }),
            ctx,
          ),
      })),
  ],
  [
    'a snapshot of tomorrow',
    'snapshot: a snapshot is what was there, and shares nothing afterwards',
    () =>
      broken((good) => {
        const sources = new Map<string, Handle>();
        return {
          snapshot: async (handle, spec, ctx) => {
            sources.set(spec.snapshotId, handle);
            return (await good.snapshot?.(handle, spec, ctx)) ?? { ref: null, sizeBytes: null };
          },
          restore: async (spec, ref, ctx) => {
            const source = sources.get(String(ref));
            if (source === undefined || good.fork === undefined) throw new Error('It is not there.');
            return await good.fork(source, spec, ctx);
          },
        };
      }),
  ],
];

function withoutSecrets(spec: ProvisionSpec): ProvisionSpec {
  return { ...spec, secrets: [], recipe: { ...spec.recipe, secretRefs: [] } };
}

function unrepeatable(good: Extension): Extension['provision'] {
  let calls = 0;
  return async (spec, ctx) => {
    calls += 1;
    const attemptId = `${spec.stamp.attemptId}-${calls}`;
    return await good.provision({ ...spec, stamp: { ...spec.stamp, attemptId } }, ctx);
  };
}

describe('the conformance suite', () => {
  it.each(cases)('the conformance suite catches %s', async (_, name, extension) => {
    expect(await verdict(extension(), name)).not.toBeNull();
    expect(await verdict(createMemoryExtension(), name).catch(() => null)).toBeNull();
  });

  it('the conformance suite has no two tests of one name', () => {
    const names = conformanceSuite().map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
  });

  it('the conformance suite reports claimed against proven', async () => {
    const cleanup = async () => {};
    const good = await runConformance({
      create: async () => ({ extension: createMemoryExtension(), cleanup }),
      shell: false,
    });
    expect(isConforming(good), formatReport(good)).toBe(true);
    expect(formatReport(good)).toMatch(/^ext\.memory conforms\n/);
    expect(formatReport(good)).toMatch(/^files +yes +partly proven: \d+ passed, \d+ skipped$/m);
    expect(formatReport(good)).toMatch(/^background +no +—$/m);
    const liar = broken(() => ({ teardown: async () => ({ gone: true, removed: [], remaining: [] }) }));
    const bad = await runConformance({
      create: async () => ({ extension: liar, cleanup }),
      shell: false,
      graceMs: 200,
    });
    expect(isConforming(bad)).toBe(false);
    expect(formatReport(bad)).toMatch(/^lifecycle +owed +BROKEN: \d+ of \d+ failed$/m);
  });

  it('the conformance suite finds objects left on the host', async () => {
    let leaks = 0;
    const report = await runConformance({
      create: async () => ({
        extension: createMemoryExtension(),
        cleanup: async () => {
          leaks += 1;
        },
      }),
      shell: false,
      hostSnapshot: async () => `mounts: ${leaks}`,
    });
    expect(report.results.find(({ name }) => name === 'host: it is as it was before')?.outcome).toBe(
      'failed',
    );
  });
});
