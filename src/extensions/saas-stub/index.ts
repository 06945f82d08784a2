import type { ExtensionHeader } from '../../core/ports/extension.ts';
import type { SaasStubOptions } from './config.ts';
import { CAPABILITIES, DEFAULT_PRICE, WITHOUT_CHANNEL } from './config.ts';
import { SaasStubExtension } from './extension.ts';
import { handles } from './handle.ts';
import { StubInputs } from './wire/boot.ts';

/** A metered backend that fails on demand, for tests and demos. It isolates nothing. */
export function createSaasStubExtension(options: SaasStubOptions): SaasStubExtension {
  const header: ExtensionHeader = {
    id: options.id ?? 'ext.saas-stub',
    title: 'Stub of a metered service',
    handleVersion: handles.version,
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
