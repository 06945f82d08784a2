import { SandboxerError } from '../contract/errors/errors.ts';
import type { ProfileIssue } from '../contract/profiles/profile.ts';
import type { CatalogueProfile, ProfileCatalogue } from '../core/ports/catalogue.ts';
import { digestOf } from '../core/recipe/canonical-json.ts';
import { nearestNames } from '../core/recipe/nearest-names.ts';
import { invalidProfile } from './profiles/profile-document.ts';
import { compareVersions } from './profiles/profile-version.ts';

/** Profiles by id and version. Immutable: a change makes a new one. */
export class Catalogue implements ProfileCatalogue {
  readonly version: string;
  readonly issues: readonly ProfileIssue[];
  readonly #broken: ReadonlyMap<string, readonly ProfileIssue[]>;
  /** Latest first. */
  readonly #versions = new Map<string, CatalogueProfile[]>();

  /** `broken`: the issues of each `id@version` that cannot be offered. */
  constructor(
    profiles: readonly CatalogueProfile[],
    issues: readonly ProfileIssue[],
    broken: ReadonlyMap<string, readonly ProfileIssue[]>,
  ) {
    this.issues = issues;
    this.#broken = broken;
    const ordered = [...profiles].sort(
      (left, right) =>
        compareText(left.profile.id, right.profile.id) ||
        compareVersions(right.profile.version, left.profile.version),
    );
    for (const entry of ordered) {
      const versions = this.#versions.get(entry.profile.id);
      if (versions) versions.push(entry);
      else this.#versions.set(entry.profile.id, [entry]);
    }
    this.version = digestOf(
      ordered.map(({ profile, fingerprint }) => [profile.id, profile.version, fingerprint]),
    );
  }

  get(ref: string, version?: string): CatalogueProfile {
    const [name = '', refVersion] = ref.split('@');
    const id = name.startsWith('profile.') ? name : `profile.${name}`;
    if (version !== undefined && refVersion !== undefined && version !== refVersion) {
      throw new SandboxerError('SBX_INVALID_REQUEST', `The profile is ${ref}, its version ${version}.`, {
        field: 'profile_version',
        remedy: 'Name the version once.',
      });
    }
    const wanted = version ?? refVersion;
    const versions = this.#versions.get(id) ?? [];
    const found =
      wanted === undefined ? versions[0] : versions.find(({ profile }) => profile.version === wanted);
    if (found) return found;
    throw this.#brokenError(id, wanted) ?? this.#notFound(id, wanted, versions);
  }

  list(): readonly CatalogueProfile[] {
    return [...this.#versions.values()].flat();
  }

  #brokenError(id: string, version: string | undefined): SandboxerError | null {
    for (const [name, issues] of this.#broken) {
      if (version === undefined ? name.startsWith(`${id}@`) : name === `${id}@${version}`)
        return invalidProfile(issues);
    }
    return null;
  }

  #notFound(id: string, version: string | undefined, versions: readonly CatalogueProfile[]): SandboxerError {
    if (versions.length > 0) {
      const known = versions.map(({ profile }) => profile.version).join(', ');
      return new SandboxerError('SBX_PROFILE_NOT_FOUND', `There is no version ${version} of ${id}.`, {
        field: 'profile_version',
        remedy: `Use one of ${known}, or leave the version out.`,
      });
    }
    const names = [...this.#versions.keys()].map((known) => known.slice('profile.'.length));
    const near = nearestNames(id.slice('profile.'.length), names).map((name) => `profile.${name}`);
    return new SandboxerError('SBX_PROFILE_NOT_FOUND', `There is no profile ${id}.`, {
      field: 'profile',
      ...(near.length > 0 && { remedy: `Did you mean ${near.join(' or ')}?` }),
    });
  }
}

function compareText(left: string, right: string): number {
  return left < right ? -1 : left > right ? 1 : 0;
}
