import { spawnSync } from 'node:child_process';
import { chmodSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { RunningStub } from '../../src/extensions/saas-stub/server/start-server.ts';
import { startStubServer } from '../../src/extensions/saas-stub/server/start-server.ts';
import { bundleCommand } from '../support/bundle-command.ts';
import type { ComposeHost } from '../support/compose-host.ts';
import { startComposeHost, whyNoComposeHost } from '../support/compose-host.ts';
import type { Need, Surroundings } from './run-document.ts';
import { ROOT } from './run-document.ts';

const CREDITS = '100';
const IMAGE_OF_DOCUMENTS = 'busybox:1';

/** Ends the servers whose state lies below a directory. */
export function endDaemons(root: string): void {
  for (const file of globSync('**/daemon.json', { cwd: root })) {
    const { pid } = JSON.parse(readFileSync(join(root, file), 'utf8')) as { pid: number };
    process.kill(pid, 'SIGTERM');
  }
}

/** What docs/guides/README.md tells a reader to have: the command, the stub backend, and credits. */
export class DocWorld implements Surroundings {
  readonly directory: string;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly has = new Set<Need>();
  readonly #root: string;
  readonly #stub: RunningStub;
  #host: ComposeHost | null = null;

  private constructor(root: string, stub: RunningStub) {
    this.#root = root;
    this.#stub = stub;
    this.directory = join(root, 'blocks');
    this.cwd = join(root, 'work');
    const bin = join(root, 'bin');
    const temporary = join(root, 'tmp');
    for (const folder of [this.directory, this.cwd, bin, temporary]) mkdirSync(folder);
    const command = join(bin, 'sandboxer');
    const node = `"${process.execPath}" --disable-warning=ExperimentalWarning`;
    writeFileSync(command, `#!/bin/sh\nexec ${node} "${bundleCommand()}" "$@"\n`);
    chmodSync(command, 0o755);
    this.env = {
      PATH: [bin, dirname(process.execPath), process.env.PATH ?? ''].join(':'),
      HOME: this.cwd,
      TMPDIR: temporary,
      LANG: 'C.UTF-8',
      XDG_CACHE_HOME: join(ROOT, 'node_modules/.cache'),
      SANDBOXER_STATE_DIR: join(root, 'state'),
      SANDBOXER_CONFIG: join(root, 'config.yaml'),
      SANDBOXER_LOG_LEVEL: 'warn',
      DOCS_NODE: process.execPath,
    };
  }

  static async open(needs: ReadonlySet<Need> = new Set()): Promise<DocWorld> {
    const root = mkdtempSync(join(tmpdir(), 'sbx-docs-'));
    // A directory inside may be mounted into a sandbox, whose users are nobody out here.
    chmodSync(root, 0o711);
    const stub = await startStubServer({ keys: ['demo-vendor-key-4711'] });
    writeFileSync(join(root, 'stub.key'), stub.key, { mode: 0o600 });
    const world = new DocWorld(root, stub);
    if (needs.has('compose') && whyNoComposeHost() === null) {
      world.#host = await startComposeHost();
      await world.#host.engine.docker('tag', world.#host.engine.image, IMAGE_OF_DOCUMENTS);
    }
    const stacks = world.#host === null ? 'enabled: false' : `directory: "${world.#host.directory}"`;
    // In lines, so that a document can add to it.
    const config = [
      'extensions:',
      `  local: { enabled: ${needs.has('local')} }`,
      `  compose_ssh: { ${stacks} }`,
      `  saas_stub: { default: { url: "${stub.url}", key_file: "${join(root, 'stub.key')}" } }`,
      'webhooks: { allow_private: true, allow_http: true }',
    ];
    writeFileSync(join(root, 'config.yaml'), `${config.join('\n')}\n`);
    world.run('credits', 'grant', CREDITS);
    if (world.#host !== null) world.#register(world.#host);
    if (needs.has('local') && world.#isHealthy('ext.local')) world.has.add('local');
    return world;
  }

  #register({ server }: ComposeHost): void {
    const { destination, port, user, hostKeys, identityFile } = server.access();
    const keys = hostKeys.flatMap((key) => ['--host-key', key]);
    const address = `${user}@${destination}:${port}`;
    this.run('hosts', 'add', 'box', address, ...keys, '--identity-file', String(identityFile));
    this.has.add('compose');
  }

  #isHealthy(extension: string): boolean {
    const { health } = JSON.parse(this.run('--json', 'extensions', 'show', extension)) as {
      health: { status: string };
    };
    return health.status === 'healthy';
  }

  run(...args: readonly string[]): string {
    const { status, stdout, stderr } = spawnSync(join(this.#root, 'bin/sandboxer'), args, {
      env: this.env,
      encoding: 'utf8',
    });
    if (status !== 0) throw new Error(`sandboxer ${args.join(' ')} ended with ${status}: ${stdout}${stderr}`);
    return stdout;
  }

  async close(): Promise<void> {
    try {
      this.run('daemon', 'stop');
      endDaemons(join(this.#root, 'tmp'));
    } finally {
      await this.#host?.close();
      await this.#stub.stop();
      rmSync(this.#root, { recursive: true, force: true });
    }
  }
}
