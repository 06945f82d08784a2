import { readFileSync } from 'node:fs';
import type { ExtensionHeader } from '../../core/ports/extension.ts';
import type { Instance, SaasStubOptions } from './config.ts';
import { CAPABILITIES, DEFAULT_PRICE, pricedAs, WITHOUT_CHANNEL } from './config.ts';
import { SaasStubExtension } from './extension.ts';
import definition from './index.ts';
import { StubInputs } from './wire/boot.ts';
import { HttpTransport } from './wire/http-transport.ts';

/** Makes a metered backend that fails on demand, for tests and demos. It isolates nothing. */
export function createSaasStubExtension(options: SaasStubOptions): SaasStubExtension {
  const header: ExtensionHeader = {
    id: options.id ?? definition.id,
    title: definition.title,
    handleVersion: definition.handle.version,
    capabilities: {
      ...CAPABILITIES,
      ...(options.transport.open === undefined ? WITHOUT_CHANNEL : {}),
      ...options.capabilities,
    },
    price: options.price === undefined ? DEFAULT_PRICE : options.price,
    inputs: StubInputs.shape,
    provisionTimeoutSeconds: options.provisionTimeoutSeconds ?? 60,
  };
  return new SaasStubExtension(header, options);
}

function transportFor(url: string, key: string): HttpTransport {
  const socketPath = url.startsWith('unix:') ? url.slice('unix:'.length) : null;
  return socketPath === null
    ? new HttpTransport({ baseUrl: url, key })
    : new HttpTransport({ baseUrl: 'http://localhost', socketPath, key });
}

export function createConfiguredStub({ id, url, key_file, price }: Instance): SaasStubExtension {
  return createSaasStubExtension({
    id,
    ...(price !== undefined && pricedAs(price)),
    transport: transportFor(url, key_file ? readFileSync(key_file, 'utf8').trim() : ''),
  });
}
