import { archives } from './archives.ts';
import type { AttemptClass } from './attempt.ts';
import { devices } from './devices.ts';
import { kernelCalls, otherAbis } from './kernel-calls.ts';
import { kernelFiles } from './kernel-files.ts';
import { mounts } from './mounts.ts';
import { namespaces } from './namespaces.ts';
import { neighbours } from './neighbours.ts';
import { processes } from './processes.ts';
import { sockets } from './sockets.ts';

/** The one list: what the tests run and what the documents say. */
export const ALL_ATTEMPTS: readonly AttemptClass[] = [
  namespaces,
  mounts,
  processes,
  kernelCalls,
  otherAbis,
  devices,
  kernelFiles,
  sockets,
  neighbours,
  archives,
];
