import { SandboxerError } from '../../contract/errors/errors.ts';
import type { ProfileIssue } from '../../contract/profiles/profile.ts';
import { Profile } from '../../contract/profiles/profile.ts';
import type { RawDocument } from '../../core/recipe/profile-merge.ts';
import { profileContradictions } from './profile-contradictions.ts';
import type { SchemaIssue } from './profile-issues.ts';
import { profileIssues } from './profile-issues.ts';
import type { FieldPath, SourcePosition } from './profile-yaml.ts';
import { NOWHERE, readProfileYaml } from './profile-yaml.ts';

export interface ProfileSource {
  readonly file: string;
  locate(path: FieldPath): SourcePosition;
}

/** A document as a profile, or everything that is wrong with it. */
export function checkProfile(document: unknown, source: ProfileSource): Profile | ProfileIssue[] {
  const issuesOf = (issues: readonly SchemaIssue[]) => profileIssues(issues, { ...source, document });
  const parsed = Profile.safeParse(document);
  if (!parsed.success) return issuesOf(parsed.error.issues as SchemaIssue[]);
  const contradictions = profileContradictions(parsed.data);
  return contradictions.length > 0 ? issuesOf(contradictions) : parsed.data;
}

/** A pushed document. Throws `SBX_PROFILE_INVALID` with every issue. */
export function parseProfileDocument(document: unknown): Profile {
  const profile = checkProfile(document, { file: 'api', locate: () => NOWHERE });
  if (Array.isArray(profile)) throw invalidProfile(profile);
  return profile;
}

/** A pushed document as YAML (or JSON) text: its issues carry line and column. */
export function parseProfileText(text: string, file = 'api'): { profile: Profile; document: RawDocument } {
  const yaml = readProfileYaml(text, file);
  if (Array.isArray(yaml)) throw invalidProfile(yaml);
  const profile = checkProfile(yaml.value, { file, locate: yaml.locate });
  if (Array.isArray(profile)) throw invalidProfile(profile);
  return { profile, document: yaml.value as RawDocument };
}

export function invalidProfile(issues: readonly ProfileIssue[]): SandboxerError {
  const [first] = issues;
  const place = first?.line ? ` (${first.file}:${first.line}:${first.column})` : '';
  const field = first?.field ? `${first.field}: ` : '';
  return new SandboxerError('SBX_PROFILE_INVALID', `${field}${first?.problem}${place}`, {
    ...(first?.field && { field: first.field }),
    ...(first && { remedy: first.remedy }),
    issues,
  });
}
