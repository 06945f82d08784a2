import { readFileSync } from 'node:fs';
import type { Extension } from '../core/extension.ts';
import type { LocalOptions } from './local/config.ts';
import { HttpTransport } from './saas-stub/http-transport.ts';
import { createSaasStubExtension } from './saas-stub/index.ts';

/** What the configuration says about the built-in backends. */
export interface BuiltinsConfig {
  /** `null` where it is turned off. */
  readonly local: LocalOptions | null;
  readonly saas_stub: Readonly<
    Record<string, { readonly url: string; readonly key_file?: string | undefined }>
  >;
}

function transportFor(url: string, key: string): HttpTransport {
  const socketPath = url.startsWith('unix:') ? url.slice('unix:'.length) : null;
  return socketPath === null
    ? new HttpTransport({ baseUrl: url, key })
    : new HttpTransport({ baseUrl: 'http://localhost', socketPath, key });
}

/** The one list of backends that come with sand-boxer. */
export async function builtinExtensions(config: BuiltinsConfig): Promise<Extension[]> {
  const stubs = Object.entries(config.saas_stub).map(([name, { url, key_file }]) =>
    createSaasStubExtension({
      id: name === 'default' ? 'ext.saas-stub' : `ext.saas-stub#${name}`,
      transport: transportFor(url, key_file ? readFileSync(key_file, 'utf8').trim() : ''),
    }),
  );
  if (config.local === null) return stubs;
  const { createLocalExtension } = await import('./local/index.ts');
  return [createLocalExtension(config.local) as Extension, ...stubs];
}
