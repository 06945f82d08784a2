/** As much of the registry protocol as an engine needs to pull one small image; a wire-level stand-in, not a registry. */
import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { writeBusyboxTree } from './busybox-tree.ts';
import { tarOf } from './image-archives.ts';

const MANIFEST = 'application/vnd.docker.distribution.manifest.v2+json';
const LAYER = 'application/vnd.docker.image.rootfs.diff.tar.gzip';
const TOKEN = 'a-token-of-the-registry';
const PIECES = 8;
const digestOf = (bytes: Buffer) => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

export interface RegistryOptions {
  readonly login?: { readonly username: string; readonly password: string };
  /** How the login is asked for: with every request, or once for a token. */
  readonly asks?: 'basic' | 'token';
}

interface Answer {
  readonly status: number;
  readonly body: Buffer | string;
  readonly type?: string;
  readonly challenge?: string;
}

function busyboxLayer(): Buffer {
  const tree = mkdtempSync(join(tmpdir(), 'sbx-layer-'));
  writeBusyboxTree(tree);
  const tar = execFileSync('tar', ['--numeric-owner', '-C', tree, '-c', '.'], { maxBuffer: 1 << 28 });
  rmSync(tree, { recursive: true });
  return tar;
}

const UNKNOWN: Answer = {
  status: 404,
  body: '{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}',
};

export class Registry {
  readonly digest: string;
  /** What the layers weigh on the wire. */
  readonly bytes: number;
  /** `Authorization` of every request, in order. */
  readonly asked: (string | undefined)[] = [];
  /** Between the pieces that a layer is sent in. */
  paceMs = 0;
  /** Sends other bytes than those that were named. */
  lies = false;
  readonly #blobs = new Map<string, Buffer>();
  readonly #manifest: Buffer;
  readonly #server: Server;
  readonly #login: string | null;
  readonly #asks: 'basic' | 'token';

  constructor({ login, asks = 'basic' }: RegistryOptions = {}) {
    const pair = login === undefined ? '' : `${login.username}:${login.password}`;
    this.#login = login === undefined ? null : `Basic ${Buffer.from(pair).toString('base64')}`;
    this.#asks = asks;
    // What cannot be compressed takes its time.
    const plain = [busyboxLayer(), tarOf([{ name: 'noise', body: randomBytes(3 << 20) }])];
    const layers = plain.map((tar) => gzipSync(tar, { level: 1 }));
    const config = Buffer.from(
      JSON.stringify({
        architecture: process.arch === 'arm64' ? 'arm64' : 'amd64',
        os: 'linux',
        config: {},
        rootfs: { type: 'layers', diff_ids: plain.map(digestOf) },
      }),
    );
    for (const blob of [...layers, config]) this.#blobs.set(digestOf(blob), blob);
    const named = (mediaType: string, blob: Buffer) => {
      return { mediaType, size: blob.length, digest: digestOf(blob) };
    };
    this.#manifest = Buffer.from(
      JSON.stringify({
        schemaVersion: 2,
        mediaType: MANIFEST,
        config: named('application/vnd.docker.container.image.v1+json', config),
        layers: layers.map((layer) => named(LAYER, layer)),
      }),
    );
    this.digest = digestOf(this.#manifest);
    this.bytes = layers.reduce((all, { length }) => all + length, 0);
    this.#server = createServer((request, response) => void this.#serve(request, response).catch(() => {}));
  }

  async open(): Promise<number> {
    await new Promise<void>((resolve) => this.#server.listen(0, '0.0.0.0', resolve));
    return (this.#server.address() as AddressInfo).port;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { authorization, host = '' } = request.headers;
    this.asked.push(authorization);
    const { status, body, type, challenge } = this.#answer(request.url ?? '', authorization, host);
    const bytes = Buffer.from(body as Buffer);
    response.writeHead(status, {
      'content-type': type ?? 'application/json',
      'content-length': bytes.length,
      'docker-content-digest': this.digest,
      'docker-distribution-api-version': 'registry/2.0',
      ...(challenge === undefined ? {} : { 'www-authenticate': challenge }),
    });
    if (request.method === 'HEAD') {
      response.end();
      return;
    }
    const piece = this.paceMs > 0 && bytes.length > 1 << 20 ? Math.ceil(bytes.length / PIECES) : bytes.length;
    for (let at = 0; at < bytes.length && !response.destroyed; at += piece) {
      if (at > 0) await sleep(this.paceMs);
      response.write(bytes.subarray(at, at + piece));
    }
    response.end();
  }

  #answer(url: string, authorization: string | undefined, host: string): Answer {
    if (this.#login !== null && this.#asks === 'token' && url.startsWith('/token')) {
      if (authorization !== this.#login) return { status: 401, body: '{}', challenge: 'Basic realm="test"' };
      return { status: 200, body: JSON.stringify({ token: TOKEN }) };
    }
    const wanted = this.#asks === 'token' ? `Bearer ${TOKEN}` : this.#login;
    if (this.#login !== null && authorization !== wanted) {
      const bearer = `Bearer realm="http://${host}/token",service="test"`;
      return {
        status: 401,
        body: '{}',
        challenge: this.#asks === 'token' ? bearer : 'Basic realm="test"',
      };
    }
    const [, kind, ref = ''] = /^\/v2\/team\/tool\/(manifests|blobs)\/(.+)$/.exec(url) ?? [];
    const blob = this.#blobs.get(ref);
    if (url === '/v2/') return { status: 200, body: '{}' };
    if (kind === 'manifests' && (ref === '1' || ref === this.digest)) {
      const body = this.lies ? Buffer.concat([this.#manifest, Buffer.from(' ')]) : this.#manifest;
      return { status: 200, body, type: MANIFEST };
    }
    if (kind === 'blobs' && blob !== undefined)
      return { status: 200, body: blob, type: 'application/octet-stream' };
    return UNKNOWN;
  }
}
