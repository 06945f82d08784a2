import type { SshAccess } from '../../../core/ports/host-access.ts';
import type { SshHostOptions } from './ssh-host.ts';
import { SshHost } from './ssh-host.ts';

/** The hosts that this process holds connections to. */
export class SshHosts {
  readonly #options: SshHostOptions;
  readonly #hosts = new Map<string, { readonly key: string; readonly host: SshHost }>();

  constructor(options: SshHostOptions = {}) {
    this.#options = options;
  }

  /** Returns the same object as long as the host is reached the same way. */
  get(id: string, access: SshAccess): SshHost {
    const key = JSON.stringify(access);
    const existing = this.#hosts.get(id);
    if (existing?.key === key) return existing.host;
    if (existing) void existing.host.close();
    const host = new SshHost(id, access, this.#options);
    this.#hosts.set(id, { key, host });
    return host;
  }

  async close(): Promise<void> {
    const hosts = [...this.#hosts.values()];
    this.#hosts.clear();
    await Promise.all(hosts.map(({ host }) => host.close()));
  }
}
