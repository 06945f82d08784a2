import { basename } from 'node:path';
import type { Command } from 'commander';
import { readInputFile } from '../args/input-file.ts';
import { CommandFailure } from '../command-failure.ts';
import { EXIT } from '../exit-code.ts';
import type { Invocation } from '../invocation.ts';

export function define(command: Command, invocation: Invocation): void {
  command
    .command('export', { isDefault: true })
    .description('Print what this installation offers, for a registry to index')
    .action(async () => {
      const entry = await (await invocation.client()).registry.export();
      invocation.printer.result(entry, () => invocation.printer.line(JSON.stringify(entry, null, 2)));
    });
  command
    .command('validate')
    .description('Check price lists before they are published')
    .argument('<file...>', 'such as registry/prices/e2b.yaml')
    .action(async (files: string[]) => {
      const { printer } = invocation;
      const { registry } = await invocation.client();
      const problems = [];
      for (const file of files) {
        const report = await registry.validate(basename(file), await readInputFile(file));
        problems.push(...report.problems.map(({ problem }) => ({ file, problem })));
      }
      if (problems.length > 0) {
        const listed = problems.map(({ file, problem }) => `${file}: ${problem}`).join('\n');
        throw new CommandFailure(listed, {
          code: 'SBX_INVALID_REQUEST',
          remedy: 'Correct the file; docs/guides/routing.md shows a whole one.',
          exitCode: EXIT.refused,
        });
      }
      printer.result({ valid: true, problems }, () =>
        printer.line(files.length === 1 ? 'It is valid.' : `All ${files.length} are valid.`),
      );
    });
}
