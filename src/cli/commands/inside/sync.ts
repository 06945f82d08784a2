import { resolve } from 'node:path';
import type { Command } from 'commander';
import type { NotTaken, SyncReport } from '../../../client/mirror/sync-mirror.ts';
import { syncMirror } from '../../../client/mirror/sync-mirror.ts';
import type { Tree } from '../../../client/mirror/tree-entry.ts';
import { treeOfUpload } from '../../../client/mirror/tree-entry.ts';
import type { SandboxerClient } from '../../../client/sandboxer-client.ts';
import { wholeAnswer } from '../../../client/transport/whole-answer.ts';
import type { Sandbox } from '../../../contract/sandboxes/sandbox.ts';
import { list } from '../../args/pairs.ts';
import { UsageError } from '../../failures/usage-error.ts';
import { addNotes } from '../../help/command-notes.ts';
import type { Invocation } from '../../invocation/invocation.ts';
import { plainText } from '../../output/plain-text.ts';
import { orBrokenOff } from '../../transfer/broken-off.ts';
import type { MirrorState } from '../../transfer/mirror-state.ts';
import { readMirror, rememberBase } from '../../transfer/mirror-state.ts';
import { requireDirectory } from '../../transfer/upload-workdir.ts';

interface Flags {
  readonly dryRun?: boolean;
  readonly force?: boolean;
  readonly allow?: readonly string[];
}

const WORKSPACE = 'workspace';

/** Returns the base: the upload that the workspace started with, or the result of an earlier sync of the same generation. */
async function baseOf(client: SandboxerClient, sandbox: Sandbox, state: MirrorState | null): Promise<Tree> {
  if (state?.base && state.generation === sandbox.generation) return new Map(state.base);
  const source = sandbox.inputs.find(({ name }) => name === 'workspace' || name === 'repo');
  if (source === undefined) {
    throw new UsageError(
      `${sandbox.sandbox_id} was not made from a directory.`,
      'Make it with sandboxer create --mirror, or copy with sandboxer cp.',
    );
  }
  return treeOfUpload(client.uploads.entries(source.upload_id));
}

/** Returns the archive, read to its end before anything is changed here. */
async function workspaceOf(client: SandboxerClient, sandbox: Sandbox): Promise<AsyncIterable<Buffer>> {
  const tree = await client.files.downloadTree(sandbox.sandbox_id, WORKSPACE);
  return wholeAnswer(tree, 'The copy of the workspace', () => 'before its end');
}

function print(invocation: Invocation, report: SyncReport, directory: string): void {
  const { printer } = invocation;
  const rows = (letter: string, paths: readonly string[]) => {
    for (const path of paths) printer.line(`${letter}  ${plainText(path)}`);
  };
  const notTaken = (letter: string, items: readonly NotTaken[]) => {
    for (const { path, reason } of items) printer.line(`${letter}  ${plainText(path)}: ${plainText(reason)}`);
  };
  rows('W', report.written);
  rows('D', report.deleted);
  notTaken('C', report.conflicts);
  notTaken('!', report.withheld);
  const did = report.dryRun ? 'would be' : 'were';
  const counts = `${report.written.length} ${did} written and ${report.deleted.length} deleted in ${directory}`;
  printer.note(
    [
      counts,
      ...(report.conflicts.length > 0 ? [`${report.conflicts.length} in conflict (--force takes them)`] : []),
      ...(report.withheld.length > 0 ? [`${report.withheld.length} held back (--allow PATTERN)`] : []),
    ].join('; '),
  );
}

async function sync(
  invocation: Invocation,
  id: string,
  given: string | undefined,
  flags: Flags,
): Promise<void> {
  const client = await invocation.client();
  const sandbox = await client.sandboxes.get(id);
  const state = readMirror(invocation.env, sandbox);
  const place = given ?? state?.directory;
  if (place === undefined) {
    throw new UsageError(
      `${id} is not a mirror of a directory here.`,
      'Name the directory: sandboxer sync <id> <directory>.',
    );
  }
  const directory = await requireDirectory(place);
  // A base shared with one directory means nothing for another.
  const own = state !== null && resolve(state.directory) === directory ? state : null;
  const base = await baseOf(client, sandbox, own);
  const progress = invocation.progress(`Comparing ${directory} with ${id}`);
  const work = async () =>
    syncMirror(await workspaceOf(client, sandbox), directory, base, {
      dryRun: flags.dryRun,
      force: flags.force,
      allow: flags.allow,
      git: own?.withGit,
      secrets: own?.withSecrets,
    });
  const report = await orBrokenOff(progress.during(work()), id, 'Nothing was changed here.');
  if (!report.dryRun) {
    const fresh = {
      directory,
      generation: sandbox.generation,
      withGit: false,
      withSecrets: false,
      base: null,
    };
    rememberBase(invocation.env, sandbox, own ?? fresh, base);
  }
  const { dryRun: dry_run, ...rest } = report;
  invocation.printer.result({ sandbox_id: sandbox.sandbox_id, directory, dry_run, ...rest }, () =>
    print(invocation, report, directory),
  );
  if (report.conflicts.length > 0) invocation.exitCode = 1;
}

export function define(command: Command, invocation: Invocation): void {
  addNotes(
    command,
    'What changed inside and not here is written: W, or deleted: D. What changed on both sides stays: C, exit code 1.',
    'Files that programs of this machine run by themselves, such as .git/hooks and .envrc, are held back: !.',
  );
  command
    .argument('<id>', 'the sandbox')
    .argument('[directory]', 'of this machine; the one it was made from when left out')
    .option('-n, --dry-run', 'say what would be done')
    .option('--force', 'take what is inside where both sides changed')
    .option('--allow <pattern>', 'write host-executed files that match, as in .gitignore', list)
    .action((id: string, directory: string | undefined, flags: Flags) =>
      sync(invocation, id, directory, flags),
    );
}
