import { execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { createComposeExtension } from '../../src/extensions/compose-ssh/create.ts';
import { context, repo, specFor } from '../../tests/integration/compose/compose-world.ts';
import type { ComposeHost } from '../../tests/support/compose-host.ts';
import { startComposeHost, whyNoComposeHost } from '../../tests/support/compose-host.ts';
import type { Benchmark, Result } from '../harness.ts';
import { summarize } from '../harness.ts';
import { ascending, skipped, timed } from '../local/world.ts';

const run = promisify(execFile);

function stack(image: string): Record<string, string> {
  const service = (name: string) => `  ${name}: {image: "${image}", init: true, command: [sleep, "9999"]}`;
  return {
    'compose.yaml': `services:\n${['web', 'db', 'cache'].map(service).join('\n')}\n`,
    ...Object.fromEntries(Array.from({ length: 100 }, (_, n) => [`src/file-${n}`, 'x'.repeat(10_000)])),
  };
}

/** Baseline by hand: one shared connection, the same files, `docker-compose up -d`, and a command that runs inside. */
class ByHand {
  readonly #host: ComposeHost;
  readonly #directory = mkdtempSync(join(tmpdir(), 'sbx-by-hand-'));
  readonly #tree = join(this.#directory, 'tree');

  constructor(host: ComposeHost, files: Readonly<Record<string, string>>) {
    this.#host = host;
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(this.#tree, path)), { recursive: true });
      writeFileSync(join(this.#tree, path), text);
    }
  }

  async up(): Promise<string> {
    const name = `hand${randomBytes(4).toString('hex')}`;
    const place = join(this.#host.engine.directory, name);
    const unpack = this.#ssh(`mkdir -p ${place} && tar -xf - -C ${place}`);
    const tar = spawn('tar', ['-C', this.#tree, '-cf', '-', '.'], { stdio: ['ignore', 'pipe', 'inherit'] });
    const shell = spawn('ssh', unpack, { stdio: ['pipe', 'ignore', 'ignore'] });
    tar.stdout.pipe(shell.stdin);
    await new Promise((resolve) => shell.once('close', resolve));
    await run('ssh', this.#ssh(`cd ${place} && docker-compose -p ${name} up -d`));
    await run('ssh', this.#ssh(`docker exec ${name}_web_1 true`));
    return name;
  }

  async down(name: string): Promise<void> {
    const place = join(this.#host.engine.directory, name);
    await run('ssh', this.#ssh(`cd ${place} && docker-compose -p ${name} down -v -t 0 && rm -rf ${place}`));
  }

  close(): void {
    rmSync(this.#directory, { recursive: true });
  }

  #ssh(command: string): string[] {
    const { server } = this.#host;
    const shared = [
      '-o',
      'ControlMaster=auto',
      '-o',
      `ControlPath=${this.#directory}/c`,
      '-o',
      'ControlPersist=20',
    ];
    const open = [
      '-o',
      'StrictHostKeyChecking=no',
      '-o',
      'UserKnownHostsFile=/dev/null',
      '-o',
      'LogLevel=ERROR',
    ];
    return [
      ...shared,
      ...open,
      '-i',
      server.identityFile,
      '-p',
      String(server.port),
      `${server.user}@${server.address}`,
      command,
    ];
  }
}

async function measureOn(host: ComposeHost, rounds: number): Promise<Result[]> {
  const files = stack(host.engine.image);
  const extension = createComposeExtension({ directory: host.directory });
  const hand = new ByHand(host, files);
  const samples = {
    up: [] as number[],
    down: [] as number[],
    handUp: [] as number[],
    handDown: [] as number[],
  };
  const ours = async (up: number[], down: number[]) => {
    const spec = specFor(extension, { inputs: repo(files) });
    await timed(up, async () => {
      await extension.waitReady(await extension.provision(spec, context(host.host)), context(host.host));
    });
    await timed(down, () => extension.teardown({ stamp: spec.stamp, handle: null }, context(host.host)));
  };
  const theirs = async (up: number[], down: number[]) => {
    const name = await timed(up, () => hand.up());
    await timed(down, () => hand.down(name));
  };
  try {
    await ours([], []);
    await theirs([], []);
    // In turns, so that other load of the machine falls on both.
    for (let n = 0; n < rounds; n += 1) {
      await ours(samples.up, samples.down);
      await theirs(samples.handUp, samples.handDown);
    }
  } finally {
    await extension.close();
    hand.close();
  }
  const details = { services: 3, upload: '1 MB in 101 files' };
  return [
    summarize({
      name: 'compose.up',
      unit: 'ms',
      samples: ascending(samples.up),
      baseline: ascending(samples.handUp),
      details,
    }),
    summarize({
      name: 'compose.down',
      unit: 'ms',
      samples: ascending(samples.down),
      baseline: ascending(samples.handDown),
      details,
    }),
  ];
}

export const benchmark: Benchmark = {
  name: 'compose.up',
  description:
    'three services to ready and gone again, against the same by hand over ssh (target ratio ≤ 1.3)',
  async run(bench) {
    const reason = whyNoComposeHost();
    if (reason !== null) return skipped('compose.up', reason);
    const host = await startComposeHost();
    try {
      return await measureOn(host, bench.iterations(10));
    } finally {
      await host.close();
    }
  },
};
