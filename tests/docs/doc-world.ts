import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { RunningStub } from '../../src/extensions/saas-stub/start-server.ts';
import { startStubServer } from '../../src/extensions/saas-stub/start-server.ts';
import { bundleCommand } from '../support/bundle-command.ts';
import type { Surroundings } from './run-document.ts';
import { ROOT } from './run-document.ts';

const CREDITS = '100';

/** What docs/guides/README.md tells a reader to have: the command, the stub backend, and credits. */
export class DocWorld implements Surroundings {
  readonly directory: string;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly #root: string;
  readonly #stub: RunningStub;

  private constructor(root: string, stub: RunningStub) {
    this.#root = root;
    this.#stub = stub;
    this.directory = join(root, 'blocks');
    this.cwd = join(root, 'work');
    const bin = join(root, 'bin');
    for (const folder of [this.directory, this.cwd, bin]) mkdirSync(folder);
    const command = join(bin, 'sandboxer');
    const node = `"${process.execPath}" --disable-warning=ExperimentalWarning`;
    writeFileSync(command, `#!/bin/sh\nexec ${node} "${bundleCommand()}" "$@"\n`);
    chmodSync(command, 0o755);
    this.env = {
      PATH: [bin, dirname(process.execPath), process.env.PATH ?? ''].join(':'),
      HOME: this.cwd,
      LANG: 'C.UTF-8',
      XDG_CACHE_HOME: join(ROOT, 'node_modules/.cache'),
      SANDBOXER_STATE_DIR: join(root, 'state'),
      SANDBOXER_CONFIG: join(root, 'config.yaml'),
      SANDBOXER_LOG_LEVEL: 'warn',
      DOCS_NODE: process.execPath,
    };
  }

  static async open(): Promise<DocWorld> {
    const root = mkdtempSync(join(tmpdir(), 'sbx-docs-'));
    const stub = await startStubServer({ keys: ['demo-vendor-key-4711'] });
    writeFileSync(join(root, 'stub.key'), stub.key, { mode: 0o600 });
    // In lines, so that a document can add to it.
    const config = [
      'extensions:',
      '  local: { enabled: false }',
      '  compose_ssh: { enabled: false }',
      `  saas_stub: { default: { url: "${stub.url}", key_file: "${join(root, 'stub.key')}" } }`,
      'webhooks: { allow_private: true, allow_http: true }',
    ];
    writeFileSync(join(root, 'config.yaml'), `${config.join('\n')}\n`);
    const world = new DocWorld(root, stub);
    world.run('credits', 'grant', CREDITS);
    return world;
  }

  run(...args: readonly string[]): void {
    const { status, stderr } = spawnSync(join(this.#root, 'bin/sandboxer'), args, {
      env: this.env,
      encoding: 'utf8',
    });
    if (status !== 0) throw new Error(`sandboxer ${args.join(' ')} ended with ${status}: ${stderr}`);
  }

  async close(): Promise<void> {
    try {
      this.run('daemon', 'stop');
    } finally {
      await this.#stub.stop();
      rmSync(this.#root, { recursive: true, force: true });
    }
  }
}
