/** Real git over real https on loopback: node's TLS in front of `git http-backend`, with a test authority's certificate. */
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Server } from 'node:https';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const IDENTITY = ['-c', 'user.name=Test', '-c', 'user.email=test@example.org'];

function openssl(directory: string, ...args: string[]): void {
  execFileSync('openssl', args, { cwd: directory, stdio: 'ignore' });
}

/** `ca.pem`, and a certificate for `localhost` under it. */
function makeCertificates(directory: string): void {
  const request = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  openssl(
    directory,
    'req',
    '-x509',
    ...request,
    '-keyout',
    'ca.key',
    '-out',
    'ca.pem',
    '-days',
    '2',
    '-subj',
    '/CN=Test CA',
  );
  openssl(
    directory,
    'req',
    ...request,
    '-keyout',
    'server.key',
    '-out',
    'server.csr',
    '-subj',
    '/CN=localhost',
  );
  writeFileSync(join(directory, 'ext'), 'subjectAltName=DNS:localhost,IP:127.0.0.1\n');
  const sign = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '2', '-extfile', 'ext'];
  openssl(directory, 'x509', '-req', '-in', 'server.csr', ...sign, '-out', 'server.pem');
}

export class GitHttpsServer {
  readonly directory = mkdtempSync(join(tmpdir(), 'sandboxer-git-'));
  /** `user:password` that is asked for; everybody may read when `null`. */
  credential: string | null = null;
  /** Where every request is sent on to. */
  redirect: string | null = null;
  /** What was asked for, newest last. */
  readonly requests: string[] = [];
  #server: Server | null = null;

  get caFile(): string {
    return join(this.directory, 'ca.pem');
  }

  get port(): number {
    const address = this.#server?.address() as AddressInfo | undefined;
    return address?.port ?? 0;
  }

  url(name: string): string {
    return `https://localhost:${this.port}/${name}.git`;
  }

  path(name: string): string {
    return join(this.directory, 'repositories', `${name}.git`);
  }

  git(name: string, ...args: string[]): string {
    const cwd = join(this.directory, 'work', name);
    return execFileSync('git', [...IDENTITY, ...args], { cwd, encoding: 'utf8' }).trim();
  }

  /** A commit with these files on `main`; answers its id. */
  commit(name: string, files: Readonly<Record<string, string>>): string {
    const work = join(this.directory, 'work', name);
    mkdirSync(work, { recursive: true });
    try {
      readFileSync(join(this.path(name), 'HEAD'));
    } catch {
      execFileSync('git', ['init', '-q', '--bare', '-b', 'main', this.path(name)]);
      execFileSync('git', ['init', '-q', '-b', 'main', work]);
      execFileSync('git', ['-C', work, 'remote', 'add', 'origin', this.path(name)]);
    }
    for (const [path, content] of Object.entries(files)) {
      mkdirSync(join(work, path, '..'), { recursive: true });
      writeFileSync(join(work, path), content);
    }
    this.git(name, 'add', '-A', '-f');
    this.git(name, 'commit', '-q', '-m', 'change');
    this.git(name, 'push', '-q', 'origin', 'HEAD:main');
    return this.git(name, 'rev-parse', 'HEAD');
  }

  async start(): Promise<void> {
    makeCertificates(this.directory);
    const key = readFileSync(join(this.directory, 'server.key'));
    const cert = readFileSync(join(this.directory, 'server.pem'));
    const server = createServer({ key, cert }, (request, response) => this.#serve(request, response));
    this.#server = server;
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  }

  async stop(): Promise<void> {
    this.#server?.closeAllConnections();
    await new Promise((resolve) => this.#server?.close(resolve));
    rmSync(this.directory, { recursive: true, force: true });
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    this.requests.push(`${request.method} ${request.url}`);
    if (this.redirect !== null) {
      response.writeHead(302, { location: `${this.redirect}${request.url}` }).end();
      return;
    }
    const wanted = this.credential && `Basic ${Buffer.from(this.credential).toString('base64')}`;
    if (wanted !== null && request.headers.authorization !== wanted) {
      response.writeHead(401, { 'www-authenticate': 'Basic realm="test"' }).end();
      return;
    }
    const [path = '', query = ''] = (request.url ?? '').split('?', 2);
    const child = spawn('git', ['http-backend'], {
      env: {
        PATH: process.env.PATH ?? '',
        GIT_PROJECT_ROOT: join(this.directory, 'repositories'),
        GIT_HTTP_EXPORT_ALL: '1',
        GIT_CONFIG_NOSYSTEM: '1',
        HOME: this.directory,
        PATH_INFO: path,
        QUERY_STRING: query,
        REQUEST_METHOD: request.method ?? 'GET',
        CONTENT_TYPE: request.headers['content-type'] ?? '',
        HTTP_CONTENT_ENCODING: String(request.headers['content-encoding'] ?? ''),
        GIT_PROTOCOL: String(request.headers['git-protocol'] ?? ''),
      },
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    request.pipe(child.stdin);
    child.stdin.on('error', () => {});
    const parts: Buffer[] = [];
    child.stdout.on('data', (data: Buffer) => parts.push(data));
    child.on('close', () => {
      const output = Buffer.concat(parts);
      const end = output.indexOf('\r\n\r\n');
      for (const line of output.toString('latin1', 0, Math.max(end, 0)).split('\r\n')) {
        const [name = '', value = ''] = line.split(/: (.*)/s, 2);
        if (name.toLowerCase() === 'status') response.statusCode = Number(value.slice(0, 3));
        else if (name !== '') response.setHeader(name, value);
      }
      response.end(output.subarray(end + 4));
    });
  }
}
