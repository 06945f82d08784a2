import type { Command } from 'commander';
import { UsageError } from '../../failures/usage-error.ts';
import { addNotes } from '../../help/command-notes.ts';
import type { Invocation } from '../../invocation/invocation.ts';
import { downloadPath } from '../../transfer/download-path.ts';
import { uploadPath } from '../../transfer/upload-path.ts';

interface Place {
  /** Sandbox of the path; `null` for this machine. */
  readonly sandboxId: string | null;
  readonly path: string;
}

const IN_SANDBOX = /^([A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?):(.*)$/s;

/** Parses an end of the copy: `id:path` is inside; `./a:b` and `/a:b` are files of this machine. */
export function placeOf(text: string): Place {
  const match = IN_SANDBOX.exec(text);
  if (!match) return { sandboxId: null, path: text };
  return { sandboxId: match[1] ?? '', path: match[2] || '.' };
}

export function define(command: Command, invocation: Invocation): void {
  addNotes(
    command,
    'Directories are copied with everything in them. Into a directory that exists, as `cp -r` does.',
    'The input and the output are the bytes of one file; a file that is called - is ./- here.',
  );
  command
    .argument('<from>', 'a path of this machine, or id:path; - is the input')
    .argument('<to>', 'id:path, or a path of this machine; - is the output')
    .option('--service <name>', 'of this service, where a sandbox is made of services')
    .action(async (fromText: string, toText: string, flags: { readonly service?: string }) => {
      const from = placeOf(fromText);
      const to = placeOf(toText);
      if ((from.sandboxId === null) === (to.sandboxId === null)) {
        const both = from.sandboxId === null ? 'Neither path is' : 'Both paths are';
        throw new UsageError(
          `${both} in a sandbox.`,
          'Write sandboxer cp ./file <id>:/path, or the other way round.',
        );
      }
      const files = (await invocation.client()).files.ofService(flags.service);
      const { printer } = invocation;
      const done =
        to.sandboxId === null
          ? await downloadPath(invocation, files, {
              id: from.sandboxId as string,
              from: from.path,
              to: to.path,
            })
          : await uploadPath(invocation, files, { from: from.path, id: to.sandboxId, to: to.path });
      if (toText === '-') return;
      printer.result(done, () =>
        printer.note(`${done.files} ${done.files === 1 ? 'file' : 'files'} to ${done.path}`),
      );
    });
}
