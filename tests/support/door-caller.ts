/** Builds tests/integration/agent/door-caller.c, for this machine and any sandbox on it. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

export function buildDoorCaller(directory: string): string {
  const program = join(directory, 'door-caller');
  const source = join(import.meta.dirname, '..', 'integration', 'agent', 'door-caller.c');
  execFileSync('cc', ['-Wall', '-O1', '-static', '-o', program, source]);
  return program;
}
