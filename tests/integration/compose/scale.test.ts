/**
 * Many stacks at once on three hosts, each with an engine and an sshd of its own. The full size, 20 on each host and 60
 * together:
 *
 *     SANDBOXER_SCALE=20 npx vitest run --project integration tests/integration/compose/scale.test.ts
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SandboxerError } from '../../../src/contract/errors/errors.ts';
import type { ProvisionSpec } from '../../../src/core/ports/extension.ts';
import { createComposeExtension } from '../../../src/extensions/compose-ssh/create.ts';
import type { ComposeHost } from '../../support/compose-host.ts';
import { startComposeHost, whyNoComposeHost } from '../../support/compose-host.ts';
import { context, owned, specFor } from './compose-world.ts';

const HOSTS = ['one', 'two', 'three'];
const EACH = Number(process.env.SANDBOXER_SCALE ?? 2);
/** Few always fit: only at the full size may a limit of the machine be met. */
const LEAST = EACH < 20 ? EACH : Math.floor(EACH * 0.9);
/** A refusal says which limit was met. */
const LIMITS = ['SBX_BACKEND_QUOTA', 'SBX_TIMEOUT', 'SBX_HOST_UNREACHABLE'];

const missing = whyNoComposeHost();

describe.skipIf(missing !== null)(`${EACH} stacks on each of ${HOSTS.length} hosts`, () => {
  let hosts: ComposeHost[];
  let extension: ReturnType<typeof createComposeExtension>;

  beforeAll(async () => {
    hosts = await Promise.all(HOSTS.map((id) => startComposeHost(id)));
    extension = createComposeExtension({ directory: '.sandboxer/compose' });
  });

  afterAll(async () => {
    await extension?.close();
    await Promise.all((hosts ?? []).map((host) => host.close()));
  });

  /** Two networks and a volume each: at the full size more networks than an engine has by itself. */
  const stack = ({ engine }: ComposeHost) => {
    const service = `image: ${engine.image}, init: true, command: [sleep, "9999"]`;
    return `services: {web: {${service}}, db: {${service}, networks: [back, default], volumes: ["data:/data"]}}
networks: {back: {}}
volumes: {data: {}}`;
  };

  async function fill(host: ComposeHost, specs: readonly ProvisionSpec[]): Promise<number> {
    const made = await Promise.allSettled(
      specs.map(async (spec) =>
        extension.waitReady(await extension.provision(spec, context(host.host)), context(host.host)),
      ),
    );
    const refused = made.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []));
    for (const reason of refused) {
      expect(reason).toBeInstanceOf(SandboxerError);
      expect(LIMITS, String(reason)).toContain((reason as SandboxerError).code);
    }
    return made.length - refused.length;
  }

  it('nearly all are ready, the rest are refused by a limit, and none leaves a trace', async () => {
    const startedAt = performance.now();
    const plans = hosts.map((host) => ({
      host,
      specs: Array.from({ length: EACH }, () =>
        specFor(extension, { recipe: { inputs: { compose: stack(host) } } }),
      ),
    }));
    const ready = await Promise.all(plans.map(({ host, specs }) => fill(host, specs)));
    const readyMs = performance.now() - startedAt;
    for (const count of ready) expect(count).toBeGreaterThanOrEqual(LEAST);
    await Promise.all(
      plans.map(async ({ host, specs }) => {
        const reports = await Promise.all(
          specs.map(({ stamp }) => extension.teardown({ stamp, handle: null }, context(host.host))),
        );
        expect(reports.every(({ gone }) => gone)).toBe(true);
        expect(await owned(extension, host.host)).toEqual([]);
        expect(await host.engine.docker('ps', '-aq')).toBe('');
        expect(await host.engine.docker('volume', 'ls', '-q')).toBe('');
        expect(await host.engine.docker('network', 'ls', '--filter', 'type=custom', '-q')).toBe('');
      }),
    );
    if (process.env.SANDBOXER_SCALE !== undefined) {
      const seconds = (ms: number) => `${Math.round(ms / 1000)} s`;
      const all = performance.now() - startedAt;
      console.log(`ready ${ready.join(' + ')} in ${seconds(readyMs)}, gone after ${seconds(all)}`);
    }
  }, 1_800_000);
});
