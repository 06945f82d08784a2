/**
 * The inputs that are file trees, in the order in which they are laid over one another in the workspace. Everything else
 * in `inputs` is text for the backend. Each may also be written with `_ref` at its end.
 */
export const TREE_INPUTS = ['workspace', 'repo', 'files', 'compose_bundle'] as const;
export type TreeInputName = (typeof TREE_INPUTS)[number];

/** The source of a tree before it was staged here. */
export type TreeOrigin =
  | { readonly kind: 'upload' }
  /** `ref` as it was asked for, `commit` as it was at that moment: a recreate gets the same one. */
  | { readonly kind: 'git'; readonly url: string; readonly ref: string | null; readonly commit: string }
  /** A directory of this machine, named by its administrator. */
  | { readonly kind: 'path'; readonly path: string };

/** A file tree that a sandbox starts with. Its content never changes: it is held by its digest. */
export interface TreeInput {
  readonly name: TreeInputName;
  readonly uploadId: string;
  /** `sha256:…` of the archive. */
  readonly digest: string;
  readonly origin: TreeOrigin;
}
