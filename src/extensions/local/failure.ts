import { SandboxerError } from '../../contract/errors.ts';
import { SpawnerError } from './spawner-client.ts';

export function lost(detail: string): SandboxerError {
  return new SandboxerError('SBX_BACKEND_LOST', detail, { backend: 'ext.local' });
}

export function failed(error: unknown, creation?: 'not_created' | 'maybe_created'): SandboxerError {
  if (error instanceof SandboxerError) return error;
  const detail = error instanceof Error ? error.message : 'It failed.';
  const extras = { backend: 'ext.local', cause: error, ...(creation === undefined ? {} : { creation }) };
  if (error instanceof SpawnerError && error.code === 'gone')
    return new SandboxerError('SBX_BACKEND_LOST', detail, extras);
  return new SandboxerError('SBX_EXTENSION_FAILED', detail, extras);
}

export function cancelled(): SandboxerError {
  return new SandboxerError('SBX_CANCELLED', 'It was given up before it began.', {
    backend: 'ext.local',
    creation: 'not_created',
  });
}
