import type { Command } from 'commander';
import type { CreateFlags } from '../../args/create-options.ts';
import { addCreateOptions, createRequestOf } from '../../args/create-options.ts';
import { durationSeconds } from '../../args/numbers.ts';
import { addStageOptions } from '../../args/stage-options.ts';
import { canaryReport, telemetryText } from '../../establish/canary-report.ts';
import { createWatched } from '../../establish/create-watched.ts';
import { establish } from '../../establish/establish.ts';
import type { Invocation } from '../../invocation/invocation.ts';
import { establishedText } from '../../output/sandbox-view.ts';
import { rememberMirror } from '../../transfer/mirror-state.ts';
import { stageForCreate } from '../../transfer/stage-for-create.ts';
import type { StageFlags } from '../../transfer/stage-inputs.ts';
import type { WorkdirFlags } from '../../transfer/upload-workdir.ts';
import { requestWithWorkdir, uploadWorkdir } from '../../transfer/upload-workdir.ts';

interface Flags extends CreateFlags, WorkdirFlags, StageFlags {
  readonly wait: boolean;
  readonly waitTimeout?: number;
  readonly quote?: string;
}

export function define(command: Command, invocation: Invocation): void {
  addStageOptions(addCreateOptions(command))
    .option(
      '--workdir <directory>',
      'upload this directory when it is ready, without what its ignore files name',
    )
    .option('--quote <id>', 'at the prices of this quote, which `estimate` gave for the same options')
    .option('--no-wait', 'answer at once, before it is ready')
    .option('--wait-timeout <duration>', 'wait no longer than this', durationSeconds)
    .action(async (flags: Flags) => {
      const { printer } = invocation;
      const client = await invocation.client();
      const startedAt = Date.now();
      const asked = {
        ...createRequestOf(flags),
        ...(flags.quote === undefined ? {} : { quote_id: flags.quote }),
      };
      const staged = await stageForCreate(invocation, client, asked, { flags });
      const withWorkdir = await requestWithWorkdir(invocation, client, staged, { flags });
      const request = withWorkdir ?? staged;
      const progress = invocation.progress(`Creating a sandbox from ${request.profile ?? 'the canary'}`);
      const options = { wait: flags.wait ? 'ready' : 'none', waitSeconds: flags.waitTimeout } as const;
      const sandbox = await establish(client, options, (keyed) =>
        createWatched(client, request, keyed, progress),
      );
      const took = Date.now() - startedAt;
      if (flags.mirror !== undefined) rememberMirror(invocation.env, sandbox, flags);
      if (flags.workdir !== undefined && withWorkdir === null)
        await uploadWorkdir(invocation, client, sandbox.sandbox_id, { flags });
      const seen = await canaryReport(client, sandbox);
      printer.result(seen ? { ...sandbox, host_telemetry: seen } : sandbox, () => {
        printer.line(sandbox.sandbox_id);
        printer.note(establishedText(sandbox, took, Date.now()));
        if (seen) printer.note(`its host: ${telemetryText(seen)}`);
      });
    });
}
