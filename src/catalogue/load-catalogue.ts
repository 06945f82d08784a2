import type { ProfileIssue } from '../contract/profiles/profile.ts';
import type { CatalogueProfile, ProfileCatalogue } from '../core/ports/catalogue.ts';
import type { PushedProfile } from '../core/ports/store/profile-store.ts';
import { digestOf } from '../core/recipe/canonical-json.ts';
import type { RawDocument } from '../core/recipe/profile-merge.ts';
import { mergeProfile } from '../core/recipe/profile-merge.ts';
import { Catalogue } from './catalogue.ts';
import type { OverrideFile } from './profiles/override-file.ts';
import { readOverride } from './profiles/override-file.ts';
import { checkProfile } from './profiles/profile-document.ts';
import type { ProfileFile, ProfileFiles, ProfileFolder } from './profiles/profile-folder.ts';
import { readProfileFolder } from './profiles/profile-folder.ts';
import { fieldName } from './profiles/profile-issues.ts';
import type { FieldPath, SourcePosition } from './profiles/profile-yaml.ts';
import { NOWHERE } from './profiles/profile-yaml.ts';

/** A profile before its overrides. */
type Base = Pick<ProfileFile, 'file' | 'document' | 'locate'>;

/** Reads the folders once and builds the catalogue of one workspace. */
export async function loadCatalogue(sources: {
  readonly folders: readonly ProfileFolder[];
  readonly pushed: readonly PushedProfile[];
}): Promise<ProfileCatalogue> {
  return buildCatalogue(await readProfileFolders(sources.folders), sources.pushed);
}

export async function readProfileFolders(folders: readonly ProfileFolder[]): Promise<ProfileFiles> {
  const ordered = [...folders].sort((left, right) => left.priority - right.priority);
  const read = await Promise.all(ordered.map(readProfileFolder));
  return { files: read.flatMap(({ files }) => files), issues: read.flatMap(({ issues }) => issues) };
}

/** Builds the catalogue without IO: from files that were read before, and the profiles that a workspace pushed. */
export function buildCatalogue(read: ProfileFiles, pushed: readonly PushedProfile[]): ProfileCatalogue {
  const issues: ProfileIssue[] = [...read.issues];
  const bases = new Map<string, Base>();
  const overrides: OverrideFile[] = [];
  const add = (base: Base) => {
    const name = nameOf(base.document);
    const known = bases.get(name);
    if (!known) bases.set(name, base);
    else if (digestOf(known.document) !== digestOf(base.document))
      issues.push(duplicateOf(known, base, name));
  };

  for (const file of read.files) {
    const { kind = 'profile', ...document } = file.document;
    if (kind === 'override') {
      const override = readOverride(file);
      if (Array.isArray(override)) issues.push(...override);
      else overrides.push(override);
    } else if (kind !== 'profile') {
      issues.push(issueAt(file, ['kind'], 'This kind of document is not known.', 'Use profile or override.'));
    } else {
      const misplaced = misplacementOf(file, document);
      if (misplaced) issues.push(misplaced);
      else add({ ...file, document });
    }
  }
  for (const { source } of pushed) add({ file: 'api', document: source, locate: () => NOWHERE });

  const broken = new Map<string, readonly ProfileIssue[]>();
  const profiles: CatalogueProfile[] = [];
  const used = new Set<OverrideFile>();
  for (const [name, base] of bases) {
    const layers = overrides.filter((override) => override.matches(base.document));
    for (const layer of layers) used.add(layer);
    const profile = checkProfile(mergeProfile(base.document, layers), {
      file: base.file,
      locate: (path) => locateIn(base, layers, path),
    });
    if (Array.isArray(profile)) {
      issues.push(...profile);
      broken.set(name, profile);
    } else profiles.push({ profile, source: base.file, fingerprint: digestOf(profile) });
  }
  for (const unused of overrides.filter((override) => !used.has(override))) {
    const remedy = 'Correct the id and version, or remove the file.';
    issues.push(issueAt(unused, ['id'], 'There is no profile that this overrides.', remedy));
  }
  return new Catalogue(profiles, issues, broken);
}

function nameOf({ id, version }: RawDocument): string {
  return `${String(id)}@${String(version)}`;
}

/**
 * Reports a file whose path and content differ. In `name/1.0.0.yaml` the path is the identity: a file that says otherwise was
 * copied and not finished.
 */
function misplacementOf(file: ProfileFile, { id, version }: RawDocument): ProfileIssue | null {
  const match = /^([^/]+)\/(\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?)\.ya?ml$/.exec(file.relativePath);
  if (!match) return null;
  const [, name, pathVersion] = match;
  if (id !== `profile.${name}`) {
    return issueAt(
      file,
      ['id'],
      'The id is not that of the path.',
      `Write "id: profile.${name}", or move the file.`,
    );
  }
  if (version !== pathVersion) {
    const remedy = `Write 'version: "${pathVersion}"', or rename the file.`;
    return issueAt(file, ['version'], 'The version is not that of the path.', remedy);
  }
  return null;
}

function duplicateOf(known: Base, base: Base, name: string): ProfileIssue {
  const problem = `${name} is already defined by ${known.file}, with other content.`;
  const remedy =
    'A published version never changes: raise the version, or write an override ("kind: override").';
  return issueAt(base, ['version'], problem, remedy);
}

/** Locates a field in the override that decided it, or in the base. */
function locateIn(base: Base, layers: readonly OverrideFile[], path: FieldPath): SourcePosition {
  const ascending = [...layers].sort((left, right) => left.priority - right.priority);
  const author = ascending.findLast(({ document }) => has(document, path)) ?? base;
  return { file: author.file, ...author.locate(path) };
}

function has(document: RawDocument, path: FieldPath): boolean {
  const value = path.reduce<unknown>(
    (at, step) => (at as Record<string, unknown> | null | undefined)?.[step],
    document,
  );
  return value !== undefined && value !== null;
}

function issueAt(
  { file, locate }: Pick<Base, 'file' | 'locate'>,
  path: FieldPath,
  problem: string,
  remedy: string,
): ProfileIssue {
  const { line, column } = locate(path);
  return { file, line, column, field: fieldName(path), problem, remedy };
}
