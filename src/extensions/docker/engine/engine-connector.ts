/** Opens connections to an engine: one stream for each. */
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import type { Duplex } from 'node:stream';
import { connect as connectTls } from 'node:tls';
import type { Endpoint } from './endpoint.ts';
import type { SshOptions } from './ssh-connector.ts';
import { SshConnector } from './ssh-connector.ts';

export interface EngineConnector {
  open(): Promise<Duplex>;
  close(): Promise<void>;
}

function toTcp({ host, port, tls }: Extract<Endpoint, { kind: 'tcp' }>): Duplex {
  if (tls === null) return connect({ host, port, noDelay: true });
  // Read for each connection: certificates are renewed under a running server.
  return connectTls({
    host,
    port,
    cert: readFileSync(tls.cert_file),
    key: readFileSync(tls.key_file),
    minVersion: 'TLSv1.2',
    ...(tls.ca_file === undefined ? {} : { ca: readFileSync(tls.ca_file) }),
  });
}

export function engineConnector(endpoint: Endpoint, ssh: SshOptions = {}): EngineConnector {
  if (endpoint.kind === 'ssh') return new SshConnector(endpoint, ssh);
  return {
    open: async () => (endpoint.kind === 'unix' ? connect(endpoint.path) : toTcp(endpoint)),
    close: async () => {},
  };
}
