import { readFileSync } from 'node:fs';
import type { Extension } from '../core/ports/extension.ts';
import type { ComposeOptions } from './compose-ssh/config.ts';
import type { DockerOptions, ImagePolicy } from './docker/containers/options.ts';
import type { LocalOptions } from './local/host/options.ts';
import type { StubPrice } from './saas-stub/config.ts';
import { pricedAs } from './saas-stub/config.ts';
import { createSaasStubExtension } from './saas-stub/index.ts';
import { HttpTransport } from './saas-stub/wire/http-transport.ts';
import type { SshOptions } from './ssh/config.ts';

/** Where the value of a secret is. */
interface SecretPlace {
  readonly provider: string;
  readonly key: string;
}

/** Logins are named by the configuration, and their values fetched when they are needed. */
interface DockerSettings extends Omit<DockerOptions, 'images'> {
  readonly images: Omit<ImagePolicy, 'logins'>;
  readonly registries: Readonly<
    Record<string, { readonly username: string; readonly password: SecretPlace }>
  >;
}

export interface BuiltinsServices {
  secret(place: SecretPlace, signal: AbortSignal): Promise<string>;
}

/** What the configuration says about the built-in backends. */
export interface BuiltinsConfig {
  /** `null` where it is turned off. */
  readonly local: LocalOptions | null;
  /** `null` where it is turned off, or no engine was found. */
  readonly docker: DockerSettings | null;
  /** `null` where it is turned off. */
  readonly compose_ssh: ComposeOptions | null;
  /** `null` where it is not turned on. */
  readonly ssh: SshOptions | null;
  readonly saas_stub: Readonly<
    Record<
      string,
      { readonly url: string; readonly key_file?: string | undefined; readonly price?: StubPrice | undefined }
    >
  >;
}

function transportFor(url: string, key: string): HttpTransport {
  const socketPath = url.startsWith('unix:') ? url.slice('unix:'.length) : null;
  return socketPath === null
    ? new HttpTransport({ baseUrl: url, key })
    : new HttpTransport({ baseUrl: 'http://localhost', socketPath, key });
}

async function dockerExtension(
  { images, registries, ...settings }: DockerSettings,
  { secret }: BuiltinsServices,
): Promise<Extension> {
  const { createDockerExtension } = await import('./docker/index.ts');
  const logins = Object.fromEntries(
    Object.entries(registries).map(([host, { username, password }]) => [
      host === 'default' ? '' : host,
      { username, password: (signal: AbortSignal) => secret(password, signal) },
    ]),
  );
  return await createDockerExtension({ ...settings, images: { ...images, logins } });
}

/** The one list of backends that come with sand-boxer, in the order of preference where nothing else decides. */
export async function builtinExtensions(
  config: BuiltinsConfig,
  services: BuiltinsServices,
): Promise<Extension[]> {
  const found: Extension[] = [];
  if (config.local !== null) {
    const { createLocalExtension } = await import('./local/index.ts');
    found.push(createLocalExtension(config.local) as Extension);
  }
  if (config.docker !== null) found.push(await dockerExtension(config.docker, services));
  if (config.ssh !== null) {
    const { createSshExtension } = await import('./ssh/index.ts');
    found.push(createSshExtension(config.ssh));
  }
  if (config.compose_ssh !== null) {
    const { createComposeExtension } = await import('./compose-ssh/index.ts');
    found.push(createComposeExtension(config.compose_ssh));
  }
  for (const [name, { url, key_file, price }] of Object.entries(config.saas_stub)) {
    found.push(
      createSaasStubExtension({
        id: name === 'default' ? 'ext.saas-stub' : `ext.saas-stub#${name}`,
        ...(price !== undefined && pricedAs(price)),
        transport: transportFor(url, key_file ? readFileSync(key_file, 'utf8').trim() : ''),
      }),
    );
  }
  return found;
}
