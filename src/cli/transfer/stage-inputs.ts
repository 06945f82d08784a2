import { homedir } from 'node:os';
import { join } from 'node:path';
import { uploadRef } from '../../client/resources/uploads.ts';
import type { SandboxerClient } from '../../client/sandboxer-client.ts';
import type { CreateSandboxInput } from '../../contract/sandboxes/sandbox.ts';
import type { Invocation } from '../invocation/invocation.ts';
import type { PackFlags } from './stage-path.ts';
import { stagePath } from './stage-path.ts';

export interface StageFlags extends PackFlags {
  readonly mirror?: string | true;
}

const TREE_INPUT = /^(workspace|repo|files|compose_bundle)(?:_ref)?$/;
const ELSEWHERE = /^(?:upload:|[a-z][a-z0-9+.-]*:\/\/|[\w.-]+@[\w.-]+:)/i;

/** Returns the path of this machine that an input names; `null` for any other input. */
function localPath(name: string, value: unknown): string | null {
  const kind = TREE_INPUT.exec(name)?.[1];
  if (kind === undefined || typeof value !== 'string' || ELSEWHERE.test(value)) return null;
  const path = value === '~' || value.startsWith('~/') ? join(homedir(), value.slice(1)) : value;
  // A bundle without a path is the name of one in the repository.
  if (kind === 'compose_bundle' && !/^(?:\.{1,2}$|\.{0,2}\/|~)/.test(value)) return null;
  return path;
}

/** Placeholder of an upload that is not made yet: no archive has this id. */
const NOT_YET = `upload:upl_${'0'.repeat(40)}`;

/** Returns the final request, with an id of no upload for each tree of this machine; `null` when it names none. */
export function unstagedRequest(request: CreateSandboxInput, flags: StageFlags): CreateSandboxInput | null {
  const given = Object.entries(request.inputs ?? {});
  const inputs = given.map(([name, value]) => [name, localPath(name, value) === null ? value : NOT_YET]);
  const isLocal = inputs.some(([, value], at) => value !== given[at]?.[1]);
  if (!isLocal && flags.mirror === undefined) return null;
  const staged = { ...request, ...(request.inputs && { inputs: Object.fromEntries(inputs) }) };
  if (flags.mirror === undefined) return staged;
  return { ...staged, workspace: { ...staged.workspace, mode: 'mirror', source: NOT_YET } };
}

interface StageInputsOptions {
  readonly flags: StageFlags;
  readonly signal?: AbortSignal | undefined;
}

/** Returns the request with everything of this machine uploaded: the server reads no paths. */
export async function stageInputs(
  invocation: Invocation,
  client: () => Promise<SandboxerClient>,
  request: CreateSandboxInput,
  { flags, signal }: StageInputsOptions,
): Promise<CreateSandboxInput> {
  const inputs: Record<string, unknown> = { ...request.inputs };
  for (const [name, value] of Object.entries(inputs)) {
    const path = localPath(name, value);
    if (path === null) continue;
    inputs[name] = uploadRef(await stagePath(invocation, await client(), path, { flags, signal }));
  }
  const staged = { ...request, ...(request.inputs && { inputs }) } as CreateSandboxInput;
  if (flags.mirror === undefined) return staged;
  const directory = flags.mirror === true ? '.' : flags.mirror;
  const source = uploadRef(await stagePath(invocation, await client(), directory, { flags, signal }));
  return { ...staged, workspace: { ...staged.workspace, mode: 'mirror', source } };
}
