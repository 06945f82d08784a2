/** A Docker engine behind TLS: its certificate, and ours, by an authority that is made for it. */
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TlsFiles } from '../../src/extensions/docker/engine/endpoint.ts';
import type { Dockerd } from './dockerd.ts';
import { startDockerd } from './dockerd.ts';

const PORT = 2376;

function openssl(...args: string[]): void {
  execFileSync('openssl', args, { stdio: ['ignore', 'ignore', 'pipe'] });
}

function makeAuthority(directory: string, name: string): void {
  const [key, cert] = [join(directory, `${name}-key.pem`), join(directory, `${name}.pem`)];
  const ec = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  openssl('req', '-x509', ...ec, '-keyout', key, '-out', cert, '-days', '1', '-subj', `/CN=${name}`);
}

function certify(directory: string, authority: string, name: string, extensions: string): void {
  const at = (suffix: string) => join(directory, `${name}${suffix}`);
  const ec = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  openssl('req', ...ec, '-keyout', at('-key.pem'), '-out', at('.csr'), '-subj', `/CN=${name}`);
  writeFileSync(at('.ext'), extensions);
  const ca = ['-CA', join(directory, `${authority}.pem`), '-CAkey', join(directory, `${authority}-key.pem`)];
  const how = ['-CAcreateserial', '-days', '1', '-extfile', at('.ext')];
  openssl('x509', '-req', '-in', at('.csr'), ...ca, ...how, '-out', at('.pem'));
}

export interface TlsEngine {
  readonly engine: Dockerd;
  readonly url: string;
  readonly tls: TlsFiles;
  /** A certificate that another authority has signed. */
  readonly strange: TlsFiles;
}

export async function startTlsEngine(): Promise<TlsEngine> {
  const engine = await startDockerd({
    link: true,
    arguments: ({ directory, address }) => {
      makeAuthority(directory, 'ca');
      makeAuthority(directory, 'strange-ca');
      certify(directory, 'ca', 'engine', `subjectAltName=IP:${address}\nextendedKeyUsage=serverAuth\n`);
      certify(directory, 'ca', 'client', 'extendedKeyUsage=clientAuth\n');
      certify(directory, 'strange-ca', 'stranger', 'extendedKeyUsage=clientAuth\n');
      const files = ['ca', 'engine', 'engine-key'].map((name) => join(directory, `${name}.pem`));
      const [ca = '', cert = '', key = ''] = files;
      const tls = ['--tlsverify', '--tlscacert', ca, '--tlscert', cert, '--tlskey', key];
      return ['--host', `tcp://0.0.0.0:${PORT}`, ...tls];
    },
  });
  const file = (name: string) => join(engine.directory, name);
  const ca_file = file('ca.pem');
  return {
    engine,
    url: `tcp://${engine.address}:${PORT}`,
    tls: { ca_file, cert_file: file('client.pem'), key_file: file('client-key.pem') },
    strange: { ca_file, cert_file: file('stranger.pem'), key_file: file('stranger-key.pem') },
  };
}
