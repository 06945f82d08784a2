import { SandboxerError } from '../../contract/errors/errors.ts';
import type { Profile } from '../../contract/profiles/profile.ts';
import type { RequestedSecretRef, SecretRef } from '../../contract/profiles/secret.ts';
import type { UploadRecord } from '../../core/assets/upload.ts';
import type { InputPort } from '../../core/ports/inputs.ts';
import type { GitRef } from '../../core/recipe/git-ref.ts';
import { addressOf, allowsHost } from '../../core/recipe/git-ref.ts';
import type { RequestedTree } from '../../core/recipe/input-refs.ts';
import { mergeSecretRefs } from '../../core/recipe/merge-secret-refs.ts';
import type { TreeInput, TreeOrigin } from '../../core/recipe/tree-input.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
import { keepStaged, requireInputs } from './stage-upload.ts';

interface Staging {
  readonly deps: ControlPorts;
  readonly port: InputPort;
  readonly caller: Caller;
  readonly profile: Profile;
  readonly signal: AbortSignal | undefined;
}

/**
 * Refuses hosts that are not allowed. The administrator of this machine could run git directly; every other caller is limited to
 * the hosts that the operator allows. The policy of the workspace is a ceiling for all of them.
 */
async function requireAllowedHost(
  { deps, port, caller }: Staging,
  git: GitRef,
  field: string,
): Promise<void> {
  const workspace = await deps.store.read('git-hosts', (tx) => tx.tenancy.workspace(caller.workspaceId));
  const ceiling = workspace?.policy?.git_hosts;
  const allowed = caller.local || allowsHost(port.gitHosts, git);
  if (allowed && (ceiling === undefined || allowsHost(ceiling, git))) return;
  const host = addressOf(git);
  const missing = allowed ? 'git_hosts of the policy of the workspace' : 'git.allow of the server';
  throw new SandboxerError('SBX_REF_REFUSED', `Repositories are not fetched from ${host}.`, {
    field,
    creation: 'not_created',
    remedy: `Upload the files, or have "${host}" added to ${missing}.`,
  });
}

/**
 * Resolves the reference of a credential, under the same rules as the secrets of a sandbox. The credential itself never reaches a
 * sandbox.
 */
function credentialRef({ profile, caller }: Staging, asked: RequestedSecretRef): SecretRef {
  const { refs, own } = mergeSecretRefs(profile, [asked], caller);
  const [brought] = own;
  const isMeant = (ref: SecretRef) =>
    brought !== undefined
      ? ref.name === brought
      : typeof asked === 'string'
        ? [ref.name, `${ref.provider}:${ref.key ?? ref.name}`].includes(asked)
        : ref.name === asked.name;
  return { ...(refs.find(isMeant) as SecretRef), delivery: 'file' };
}

async function credentialOf(staging: Staging, asked: RequestedSecretRef | null): Promise<string | null> {
  if (asked === null) return null;
  const { deps, caller, signal } = staging;
  const [resolved] = await deps.resolveSecrets(
    caller.workspaceId,
    [credentialRef(staging, asked)],
    { credentials: ['file'] },
    signal ?? new AbortController().signal,
  );
  return resolved?.value ?? null;
}

async function keepArchive(
  { deps, port, caller, signal }: Staging,
  archive: AsyncIterable<Uint8Array>,
  origin: TreeOrigin,
): Promise<TreeInputOf> {
  const staged = await port.stage(archive, signal);
  try {
    const { id, digest } = await keepStaged(deps, caller, staged, origin);
    return { uploadId: id, digest, origin };
  } finally {
    await staged.discard();
  }
}

type TreeInputOf = Omit<TreeInput, 'name'>;

async function uploaded({ deps, caller }: Staging, id: string, field: string): Promise<TreeInputOf> {
  const record: UploadRecord | null = await deps.store.read('upload', (tx) => tx.uploads.get(id));
  if (record?.workspaceId === caller.workspaceId) {
    return { uploadId: id, digest: record.digest, origin: { kind: 'upload' } };
  }
  throw new SandboxerError('SBX_NOT_FOUND', `There is no upload "${id}".`, {
    field,
    creation: 'not_created',
    remedy: 'Upload it again: uploads that no sandbox has expire.',
  });
}

/** Returns the error with this field, unless it names one. */
function atField({ code, detail, extras }: SandboxerError, field: string): SandboxerError {
  return new SandboxerError(code, detail, { field, ...extras });
}

async function staged(staging: Staging, { field, ref }: RequestedTree): Promise<TreeInputOf> {
  const { port, signal } = staging;
  if (ref.kind === 'upload') return uploaded(staging, ref.uploadId, field);
  if (ref.kind === 'path') return keepArchive(staging, port.pack(ref.path), ref);
  await requireAllowedHost(staging, ref.git, field);
  const credential = await credentialOf(staging, ref.credential);
  const { url, ref: asked } = ref.git;
  try {
    return await port.fetch(ref.git, credential, signal, ({ commit, archive }) =>
      keepArchive(staging, archive, { kind: 'git', url, ref: asked, commit }),
    );
  } catch (error) {
    throw error instanceof SandboxerError ? atField(error, field) : error;
  }
}

interface StageTrees {
  readonly profile: Profile;
  readonly trees: readonly RequestedTree[];
  readonly signal?: AbortSignal | undefined;
}

/** Fetches everything that a request names, before anything is provisioned: afterwards no outside server is asked again. */
export async function stageTrees(
  deps: ControlPorts,
  caller: Caller,
  { profile, trees, signal }: StageTrees,
): Promise<readonly TreeInput[]> {
  if (trees.length === 0) return [];
  const staging: Staging = { deps, port: requireInputs(deps), caller, profile, signal };
  const inputs: TreeInput[] = [];
  for (const tree of trees) inputs.push({ name: tree.name, ...(await staged(staging, tree)) });
  return inputs;
}
