import { randomBytes } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { dialPort } from '../control/use/use-sandbox.ts';
import type { Log } from '../core/ports/log.ts';
import type { Store } from '../core/ports/store/store.ts';
import type { Caller } from '../core/tenancy/caller.ts';
import { KeyEnds } from '../http/keys/key-ends.ts';
import { portDuplex } from '../http/preview/port-duplex.ts';
import { PreviewAccess } from '../http/preview/preview-access.ts';
import type { PreviewOrigin } from '../http/preview/preview-origin.ts';
import { PreviewServer } from '../http/preview/preview-server.ts';
import type { ResolvedConfig } from './config/config.ts';
import type { ControlPlane } from './wire.ts';

const KEY_SETTING = 'preview_key';

async function previewKey(store: Store): Promise<Buffer> {
  return store.transaction('preview-key', async (tx) => {
    const known = await tx.setting(KEY_SETTING);
    if (known !== null) return Buffer.from(known, 'base64');
    const fresh = randomBytes(32);
    await tx.setSetting(KEY_SETTING, fresh.toString('base64'));
    return fresh;
  });
}

/** Server of previews. It starts listening at the first request for a preview, unless an address is configured. */
export class Previews implements PreviewOrigin {
  readonly access: PreviewAccess;
  readonly #server: PreviewServer;
  readonly #keyEnds: KeyEnds;
  readonly #config: ResolvedConfig['preview'];
  readonly #log: Log;
  #listening: Promise<number> | null = null;

  private constructor(control: ControlPlane, caller: Caller, config: ResolvedConfig['preview'], key: Buffer) {
    this.access = new PreviewAccess(key);
    this.#keyEnds = new KeyEnds(control);
    this.#config = config;
    this.#log = control.log;
    this.#server = new PreviewServer({
      access: this.access,
      log: control.log,
      domain: config.domain,
      secure: config.url?.startsWith('https://') ?? false,
      now: () => control.clock.now(),
      keyEnds: this.#keyEnds,
      // The signature admits a visitor; the sandbox is then reached in our own name.
      dial: async (uid, port, signal) =>
        portDuplex(await dialPort(control, caller, { id: uid, port, signal })),
    });
  }

  static async open(
    control: ControlPlane,
    caller: Caller,
    config: ResolvedConfig['preview'],
  ): Promise<Previews> {
    const previews = new Previews(control, caller, config, await previewKey(control.store));
    if (config.listen !== null) await previews.#listen();
    return previews;
  }

  async addressOf(label: string): Promise<string> {
    const port = await this.#listen();
    return this.#config.url === null
      ? `http://${label}.${this.#config.domain}:${port}`
      : this.#config.url.replace('*', label);
  }

  async close(): Promise<void> {
    this.#keyEnds.close();
    if (this.#listening) await this.#server.close();
  }

  #listen(): Promise<number> {
    this.#listening ??= this.#startListening().catch((error: unknown) => {
      // The address may be free next time.
      this.#listening = null;
      throw error;
    });
    return this.#listening;
  }

  #startListening(): Promise<number> {
    return new Promise((resolve, reject) => {
      const address = this.#config.listen ?? '127.0.0.1:0';
      const at = address.lastIndexOf(':');
      const { server } = this.#server;
      server.once('error', reject);
      server.listen(Number(address.slice(at + 1)), address.slice(0, at).replace(/^\[|\]$/g, ''), () => {
        server.off('error', reject);
        // A failed connection does not end the server.
        server.on('error', (error) => this.#log.warn({ err: error }, 'a preview could not be connected to'));
        resolve((server.address() as AddressInfo).port);
      });
    });
  }
}
