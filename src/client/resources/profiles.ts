import type {
  ProfileEntry,
  ProfileInput,
  ProfileIssue,
  ProfileVerdict,
} from '../../contract/profiles/profile.ts';
import { pathOf } from '../transport/path-of.ts';
import type { CallOptions, Transport } from '../transport/transport.ts';
import type { OutputOf } from './schema-types.ts';

export type CatalogueProfile = OutputOf<typeof ProfileEntry>;

export type ProfileCheck = OutputOf<typeof ProfileVerdict>;

export interface ProfileList {
  readonly items: readonly CatalogueProfile[];
  /** Issues of documents that could not become profiles. */
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

  /** Returns a profile by `profile.agent-dev`, or `profile.agent-dev@1.0.0`. */
  get(ref: string, options: CallOptions = {}): Promise<CatalogueProfile> {
    return this.#transport.json({ ...options, method: 'GET', path: pathOf('profiles', ref) });
  }

  /** Checks a profile as a push would, and stores nothing. An error is thrown with every issue. */
  validate(profile: ProfileInput | string, options: CallOptions = {}): Promise<ProfileCheck> {
    return this.#post('/v1/profiles?validate=true', profile, options);
  }

  /** Publishes a version, from an object or from YAML text. */
  push(profile: ProfileInput | string, options: CallOptions = {}): Promise<CatalogueProfile> {
    return this.#post('/v1/profiles', profile, options);
  }

  #post<T>(path: string, profile: ProfileInput | string, options: CallOptions): Promise<T> {
    const body =
      typeof profile === 'string'
        ? { body: Buffer.from(profile), contentType: 'application/yaml' }
        : { json: profile };
    return this.#transport.json({ ...options, method: 'POST', path, ...body });
  }
}
