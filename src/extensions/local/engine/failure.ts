import { SandboxerError } from '../../../contract/errors/errors.ts';
import type { EndedFor } from '../../../core/ports/extension.ts';
import { refusedPlace, SOURCE_REMEDY, TARGET_REMEDY } from '../mounts/mount-targets.ts';
import type { SandboxRecord } from '../state/record.ts';
import { SpawnerError } from './spawner-client.ts';

export function lost(detail: string): SandboxerError {
  return new SandboxerError('SBX_BACKEND_LOST', detail, { backend: 'ext.local' });
}

/** Returns why a full disk ended a sandbox. `why`: the spawner's number of the reason; 0 is none. */
export function diskFull({ keep, limits }: SandboxRecord, why: number): EndedFor | null {
  const most = Math.floor((limits.roomBytes ?? 0) / 1_048_576);
  const detail = [
    null,
    `It wrote more than the ${most} MiB that it may, or as many files as have no room in them.`,
    'The disk of its machine is nearly full, and it was the one that wrote most.',
    'It moved its directories so that what it writes could not be counted.',
  ][why];
  if (!detail) return null;
  return {
    code: 'SBX_DISK_FULL',
    detail,
    remedy: keep
      ? 'Resume it and remove files, or create a new one with resources.disk_mb.'
      : 'Create a new one with resources.disk_mb, or have it write less.',
  };
}

export function failed(error: unknown, creation?: 'not_created' | 'maybe_created'): SandboxerError {
  if (error instanceof SandboxerError) return error;
  const detail = error instanceof Error ? error.message : 'It failed.';
  const extras = { backend: 'ext.local', cause: error, ...(creation === undefined ? {} : { creation }) };
  if (error instanceof SpawnerError && error.code === 'gone')
    return new SandboxerError('SBX_BACKEND_LOST', detail, extras);
  if (error instanceof SpawnerError && error.code === 'refused') return refused(detail);
  return notMounted(detail) ?? new SandboxerError('SBX_EXTENSION_FAILED', detail, extras);
}

/** Message of a runtime that cannot mount a file on a directory, or the reverse. It has the spawner's path of the source. */
const NOT_MOUNTED = /\/mnt\/b\/m(\d+)\W+to\W.*: ([^:]+)$/s;

function notMounted(text: string): SandboxerError | null {
  const [, index, why = ''] = NOT_MOUNTED.exec(text) ?? [];
  if (index === undefined) return null;
  return refusedPlace(
    `inputs.mounts[${index}].target`,
    `It cannot be mounted there: ${why.trim()}.`,
    'A directory is mounted on a directory, or where nothing is; a file on a file, or where nothing is.',
    'maybe_created',
  );
}

/** The text of the spawner begins with the field. */
function refused(text: string): SandboxerError {
  const [, field = '', detail = text] = /^(\S+) ([\s\S]*)$/.exec(text.trim()) ?? [];
  const remedy = field.endsWith('.source') ? SOURCE_REMEDY : TARGET_REMEDY;
  // No program of it ever ran; its directory exists.
  return refusedPlace(field, detail, remedy, 'maybe_created');
}

export function cancelled(): SandboxerError {
  return new SandboxerError('SBX_CANCELLED', 'It was given up before it began.', {
    backend: 'ext.local',
    creation: 'not_created',
  });
}

export function stopped(): SandboxerError {
  return new SandboxerError('SBX_INVALID_STATE', 'It has stopped, with its disk.', {
    backend: 'ext.local',
    remedy: 'Resume it: sandboxer resume ID.',
  });
}
