import type { Command } from 'commander';
import { readRegistryFiles } from '../../args/registry-files.ts';
import { CommandFailure } from '../../failures/command-failure.ts';
import { EXIT } from '../../failures/exit-code.ts';
import type { Invocation } from '../../invocation/invocation.ts';

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
    .description('Check a registry as a federation would, or single files before they are published')
    .argument('[path...]', 'files or directories; default: the registry of the server')
    .action(async (paths: string[]) => {
      const { printer } = invocation;
      const files = paths.length === 0 ? undefined : await readRegistryFiles(paths);
      const report = await (await invocation.client()).registry.validate(files);
      if (!report.valid) {
        const listed = report.problems.map(({ file, problem }) => `${file}: ${problem}`).join('\n');
        throw new CommandFailure(listed, {
          code: 'SBX_INVALID_REQUEST',
          remedy: 'Correct the file; docs/guides/routing.md shows a whole one.',
          exitCode: EXIT.refused,
        });
      }
      printer.result(report, () =>
        printer.line(report.files === 1 ? 'It is valid.' : `All ${report.files} files are valid.`),
      );
    });
  command
    .command('publish')
    .description('Publish the capability entry of the server to reuse-surface')
    .action(async () => {
      const { registry } = await invocation.client();
      const published = await invocation.progress('Publishing the registry').during(registry.publish());
      const { capability, status, target, outcome } = published;
      invocation.printer.result(published, () =>
        invocation.printer.line(`${capability} (${status}): ${outcome} at ${target}`),
      );
    });
}
