/** As much of the registry protocol as an engine needs to pull one small image; a wire-level stand-in, not a registry. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import type { Server } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { writeBusyboxTree } from './busybox-tree.ts';

const MANIFEST = 'application/vnd.docker.distribution.manifest.v2+json';
const digestOf = (bytes: Buffer) => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

export class Registry {
  readonly digest: string;
  /** `Authorization` of every request, in order. */
  readonly asked: (string | undefined)[] = [];
  readonly #blobs = new Map<string, Buffer>();
  readonly #manifest: Buffer;
  readonly #server: Server;
  readonly #login: string | null;

  constructor(login: { readonly username: string; readonly password: string } | null = null) {
    this.#login =
      login === null
        ? null
        : `Basic ${Buffer.from(`${login.username}:${login.password}`).toString('base64')}`;
    const tree = mkdtempSync(join(tmpdir(), 'sbx-layer-'));
    writeBusyboxTree(tree);
    const tar = execFileSync('tar', ['--numeric-owner', '-C', tree, '-c', '.'], { maxBuffer: 1 << 28 });
    rmSync(tree, { recursive: true });
    const layer = gzipSync(tar, { level: 1 });
    const config = Buffer.from(
      JSON.stringify({
        architecture: process.arch === 'arm64' ? 'arm64' : 'amd64',
        os: 'linux',
        config: {},
        rootfs: { type: 'layers', diff_ids: [digestOf(tar)] },
      }),
    );
    for (const blob of [layer, config]) this.#blobs.set(digestOf(blob), blob);
    this.#manifest = Buffer.from(
      JSON.stringify({
        schemaVersion: 2,
        mediaType: MANIFEST,
        config: {
          mediaType: 'application/vnd.docker.container.image.v1+json',
          size: config.length,
          digest: digestOf(config),
        },
        layers: [
          {
            mediaType: 'application/vnd.docker.image.rootfs.diff.tar.gzip',
            size: layer.length,
            digest: digestOf(layer),
          },
        ],
      }),
    );
    this.digest = digestOf(this.#manifest);
    this.#server = createServer((request, response) => {
      this.asked.push(request.headers.authorization);
      const answer = (status: number, body: Buffer | string, type = 'application/json') =>
        response
          .writeHead(status, {
            'content-type': type,
            'content-length': Buffer.byteLength(body),
            'docker-content-digest': this.digest,
            'docker-distribution-api-version': 'registry/2.0',
            ...(status === 401 ? { 'www-authenticate': 'Basic realm="test"' } : {}),
          })
          .end(request.method === 'HEAD' ? undefined : body);
      if (this.#login !== null && request.headers.authorization !== this.#login) return answer(401, '{}');
      const [, kind, ref = ''] = /^\/v2\/team\/tool\/(manifests|blobs)\/(.+)$/.exec(request.url ?? '') ?? [];
      const blob = this.#blobs.get(ref);
      if (request.url === '/v2/') return answer(200, '{}');
      if (kind === 'manifests' && (ref === '1' || ref === this.digest))
        return answer(200, this.#manifest, MANIFEST);
      if (kind === 'blobs' && blob !== undefined) return answer(200, blob, 'application/octet-stream');
      return answer(404, '{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}');
    });
  }

  async open(): Promise<number> {
    await new Promise<void>((resolve) => this.#server.listen(0, '0.0.0.0', resolve));
    return (this.#server.address() as AddressInfo).port;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}
