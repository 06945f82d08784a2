import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Tree, TreeEntry } from '../../client/mirror/tree-entry.ts';
import type { Sandbox } from '../../contract/sandboxes/sandbox.ts';
import type { StageFlags } from './stage-inputs.ts';
import { askedSecrets } from './stage-path.ts';

/** Record of a directory of this machine that a sandbox has a copy of. */
export interface MirrorState {
  readonly directory: string;
  readonly generation: number;
  readonly withGit: boolean;
  readonly withSecrets: boolean | readonly string[];
  /** State in common after the last sync; `null` before the first: the upload. */
  readonly base: readonly (readonly [string, TreeEntry])[] | null;
}

function pathOf(env: NodeJS.ProcessEnv, uid: string): string {
  const states = env.XDG_STATE_HOME || join(env.HOME || homedir(), '.local', 'state');
  return join(states, 'sandboxer', 'mirrors', `${uid.replace(/[^\w-]/g, '_')}.json`);
}

function write(env: NodeJS.ProcessEnv, uid: string, state: MirrorState): void {
  const path = pathOf(env, uid);
  mkdirSync(join(path, '..'), { recursive: true, mode: 0o700 });
  writeFileSync(`${path}.new`, JSON.stringify(state), { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

export function rememberMirror(env: NodeJS.ProcessEnv, sandbox: Sandbox, flags: StageFlags): void {
  write(env, sandbox.uid, {
    directory: resolve(flags.mirror === undefined || flags.mirror === true ? '.' : flags.mirror),
    generation: sandbox.generation,
    withGit: flags.withGit === true,
    withSecrets: askedSecrets(flags),
    base: null,
  });
}

export function rememberBase(env: NodeJS.ProcessEnv, sandbox: Sandbox, state: MirrorState, base: Tree): void {
  write(env, sandbox.uid, { ...state, generation: sandbox.generation, base: [...base] });
}

export function readMirror(env: NodeJS.ProcessEnv, sandbox: Sandbox): MirrorState | null {
  try {
    return JSON.parse(readFileSync(pathOf(env, sandbox.uid), 'utf8')) as MirrorState;
  } catch {
    return null;
  }
}
