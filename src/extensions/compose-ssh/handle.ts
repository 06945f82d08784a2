import type { Json } from '../../contract/values/json.ts';
import type { Handle } from '../../core/ports/extension.ts';
import { lost } from './remote/failure.ts';
import { StackHandle } from './remote/stack-handle.ts';

export const HANDLE_VERSION = 1;

export function handleOf(data: StackHandle): Handle {
  return { version: HANDLE_VERSION, data: data as unknown as Json };
}

export function readHandle(handle: Handle): StackHandle {
  if (handle.version !== HANDLE_VERSION) throw lost('The handle is of a version that is not understood.');
  return StackHandle.parse(handle.data);
}
