import type { ProfileEntry, ProfileInput, ProfileIssue } from '../contract/profile.ts';
import { pathOf } from './path-of.ts';
import type { OutputOf } from './schema-types.ts';
import type { CallOptions, Transport } from './transport.ts';

export type CatalogueProfile = OutputOf<typeof ProfileEntry>;

export interface ProfileList {
  readonly items: readonly CatalogueProfile[];
  /** Documents that could not become profiles. */
  readonly issues?: readonly ProfileIssue[];
}

export class Profiles {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  list(options: CallOptions = {}): Promise<ProfileList> {
    return this.#transport.json({ ...options, method: 'GET', path: '/v1/profiles' });
  }

  /** `profile.agent-dev`, or `profile.agent-dev@1.0.0`. */
  get(ref: string, options: CallOptions = {}): Promise<CatalogueProfile> {
    return this.#transport.json({ ...options, method: 'GET', path: pathOf('profiles', ref) });
  }

  /** Publishes a version, from an object or from YAML text. */
  push(profile: ProfileInput | string, options: CallOptions = {}): Promise<CatalogueProfile> {
    const body =
      typeof profile === 'string'
        ? { body: Buffer.from(profile), contentType: 'application/yaml' }
        : { json: profile };
    return this.#transport.json({ ...options, method: 'POST', path: '/v1/profiles', ...body });
  }
}
