import type { ProfileIssue } from '../../contract/profiles/profile.ts';
import { ProfileId, ProfileVersion } from '../../contract/values/ids.ts';
import type { OverrideLayer, RawDocument } from '../../core/recipe/profile-merge.ts';
import type { ProfileFile } from './profile-folder.ts';

/** `kind: override`, `id`, perhaps `version` and `priority`, and the fields that change. */
export interface OverrideFile extends OverrideLayer, Pick<ProfileFile, 'file' | 'locate'> {
  matches(profile: RawDocument): boolean;
}

export function readOverride({
  file,
  document,
  locate,
  folderPriority,
}: ProfileFile): OverrideFile | ProfileIssue[] {
  const { id, version, priority = folderPriority } = document;
  const issues: ProfileIssue[] = [];
  const refuse = (field: string, problem: string, remedy: string) => {
    const { line, column } = locate([field]);
    issues.push({ file, line, column, field, problem, remedy });
  };
  if (!ProfileId.safeParse(id).success) {
    refuse('id', 'An override names the profile that it changes.', 'Write "id: profile.<name>".');
  }
  if (version !== undefined && !ProfileVersion.safeParse(version).success) {
    refuse(
      'version',
      'This is not a version.',
      'Write \'version: "1.0.0"\', or leave it out to mean all versions.',
    );
  }
  if (typeof priority !== 'number' || !Number.isSafeInteger(priority)) {
    refuse(
      'priority',
      'A priority is a whole number.',
      'Write "priority: 10"; the highest has the last word.',
    );
  }
  if (issues.length > 0) return issues;
  return {
    file,
    document,
    locate,
    priority: Number(priority),
    matches: (profile) => profile.id === id && (version === undefined || profile.version === version),
  };
}
