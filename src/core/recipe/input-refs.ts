import { UploadId } from '../../contract/assets/upload.ts';
import { SandboxerError } from '../../contract/errors/errors.ts';
import type { Mount } from '../../contract/profiles/inputs.ts';
import { CommonInputs, Mounts, TreeSource } from '../../contract/profiles/inputs.ts';
import type { RequestedSecretRef } from '../../contract/profiles/secret.ts';
import type { CreateSandboxRequest } from '../../contract/sandboxes/sandbox.ts';
import type { Json } from '../../contract/values/json.ts';
import type { Caller } from '../tenancy/caller.ts';
import type { GitRef } from './git-ref.ts';
import { looksLikeGit, parseGitRef } from './git-ref.ts';
import type { TreeInput, TreeInputName } from './tree-input.ts';
import { TREE_INPUTS } from './tree-input.ts';

export type TreeRef =
  | { readonly kind: 'upload'; readonly uploadId: string }
  | { readonly kind: 'git'; readonly git: GitRef; readonly credential: RequestedSecretRef | null }
  /** Absolute, on this machine. Only its administrator gets this far. */
  | { readonly kind: 'path'; readonly path: string };

export interface RequestedTree {
  readonly name: TreeInputName;
  readonly field: string;
  readonly ref: TreeRef;
}

export interface RequestedInputs {
  /** The inputs that are not trees: text for the backend. */
  readonly plain: Readonly<Record<string, Json>>;
  readonly trees: readonly RequestedTree[];
  readonly mounts: readonly Mount[];
  readonly elevated: boolean;
}

const UPLOAD = 'upload:';
/** Inside the repository: relative, and never what a program takes for an option or a home. */
const PLACE_IN_REPOSITORY = /^(?![-~/])(?!.*(?:^|\/)\.\.(?:\/|$))[^:\\\0]+$/;

function invalid(detail: string, field: string): SandboxerError {
  return new SandboxerError('SBX_INVALID_REQUEST', detail, {
    field,
    creation: 'not_created',
    remedy: 'Name an upload (upload:upl_…) or a repository (https://host/path.git#branch).',
  });
}

function uploadRef(id: string, field: string): TreeRef {
  if (!UploadId.safeParse(id).success) throw invalid('This is not the id of an upload.', field);
  return { kind: 'upload', uploadId: id };
}

/** Refuses paths of any caller but the local administrator: a path is the client's, and the server reads only its own disk. */
function pathRef(text: string, field: string, caller: Caller): TreeRef {
  const path = text.startsWith('file:///') ? (URL.parse(text)?.pathname ?? '') : text;
  if (caller.local && path.startsWith('/') && !path.includes('\0')) return { kind: 'path', path };
  throw new SandboxerError('SBX_REF_REFUSED', 'The server does not read paths for others.', {
    field,
    creation: 'not_created',
    ...(caller.local && { remedy: 'Name an absolute path, an upload or a repository.' }),
  });
}

function treeRef(value: Json, field: string, caller: Caller): TreeRef {
  if (typeof value === 'string') {
    if (value.startsWith(UPLOAD)) return uploadRef(value.slice(UPLOAD.length), field);
    if (looksLikeGit(value)) return { kind: 'git', git: parseGitRef(value, null, field), credential: null };
    return pathRef(value, field, caller);
  }
  const parsed = TreeSource.safeParse(value);
  if (!parsed.success) throw invalid('This is not a file tree.', field);
  const source = parsed.data;
  if ('upload' in source) return { kind: 'upload', uploadId: source.upload };
  const git = parseGitRef(source.git, source.ref ?? null, field);
  return { kind: 'git', git, credential: source.credential ?? null };
}

function readMounts(value: Json, caller: Caller): readonly Mount[] {
  if (!caller.local) {
    throw new SandboxerError(
      'SBX_REF_REFUSED',
      'Only the administrator on the unix socket may mount directories of the server.',
      {
        field: 'inputs.mounts',
        creation: 'not_created',
      },
    );
  }
  const parsed = Mounts.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new SandboxerError('SBX_INVALID_REQUEST', issue?.message ?? 'The mounts are not valid.', {
    field: ['inputs.mounts', ...(issue?.path ?? [])].join('.'),
    creation: 'not_created',
  });
}

function readCommon(given: Record<string, unknown>): CommonInputs {
  const parsed = CommonInputs.safeParse(given);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const field = ['inputs', ...(issue?.path ?? [])].join('.');
  const detail = `${field}: this is neither true nor false.`;
  throw new SandboxerError('SBX_INVALID_REQUEST', detail, {
    field,
    creation: 'not_created',
    remedy: issue?.message ?? 'Leave it out.',
  });
}

/** Trees as a recipe has them, before any of them is staged: routing looks at their names alone. */
export function unstaged(trees: readonly RequestedTree[]): readonly TreeInput[] {
  return trees.map(({ name }) => ({ name, uploadId: '', digest: '', origin: { kind: 'upload' } }));
}

/** Separates the file trees, the mounts and the inputs that every backend takes from plain values. */
export function requestedInputs(request: CreateSandboxRequest, caller: Caller): RequestedInputs {
  const { mounts, elevated: _elevated, ...inputs } = request.inputs;
  const { elevated = false, warm } = readCommon(request.inputs);
  const plain: Record<string, Json> = { ...inputs, ...(warm !== undefined && { warm }) };
  const trees: RequestedTree[] = [];
  for (const name of TREE_INPUTS) {
    const spellings = [name, `${name}_ref`].filter((key) => Object.hasOwn(inputs, key));
    const given = spellings.map((key) => ({ field: `inputs.${key}`, value: inputs[key] as Json }));
    if (name === 'workspace' && request.workspace?.source !== undefined) {
      given.push({ field: 'workspace.source', value: request.workspace.source as Json });
    }
    const [first, second] = given;
    if (first === undefined) continue;
    if (second !== undefined) throw invalid(`The same tree is named by ${first.field}, too.`, second.field);
    const { field, value } = first;
    const staysPlain =
      name === 'compose_bundle' &&
      typeof value === 'string' &&
      !looksLikeGit(value) &&
      PLACE_IN_REPOSITORY.test(value);
    if (staysPlain) continue;
    for (const key of spellings) delete plain[key];
    trees.push({ name, field, ref: treeRef(value, field, caller) });
  }
  return { plain, trees, elevated, mounts: mounts === undefined ? [] : readMounts(mounts, caller) };
}
