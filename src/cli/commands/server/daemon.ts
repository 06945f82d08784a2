import type { Command } from 'commander';
import { daemonFiles } from '../../daemon/daemon-files.ts';
import { answers, ensureDaemon } from '../../daemon/ensure-daemon.ts';
import { runningDaemon, stopDaemon } from '../../daemon/stop-daemon.ts';
import type { Invocation } from '../../invocation/invocation.ts';
import { relativeTime } from '../../output/relative-time.ts';
import { packageVersion } from '../../process/package-version.ts';

async function status(invocation: Invocation): Promise<void> {
  const { printer, env } = invocation;
  const files = daemonFiles(env);
  const record = runningDaemon(files);
  const answering = await answers(files.socketPath);
  const shown = {
    running: record !== null || answering,
    answering,
    pid: record?.pid ?? null,
    version: record?.version ?? null,
    started_at: record?.started_at ?? null,
    socket: files.socketPath,
    state_dir: files.stateDir,
    log: files.log,
  };
  printer.result(shown, () => {
    const { version } = shown;
    const other = version !== null && version !== packageVersion() ? ' (the next command replaces it)' : '';
    printer.details([
      ['state', shown.running ? (answering ? 'running' : 'running, not answering') : 'not running'],
      ['pid', shown.pid === null ? null : String(shown.pid)],
      ['version', version === null ? null : version + other],
      ['started', shown.started_at && relativeTime(shown.started_at, Date.now())],
      ['socket', shown.socket],
      ['directory', shown.state_dir],
      ['log', shown.log],
    ]);
  });
  if (!shown.running) invocation.exitCode = 3;
}

export function define(command: Command, invocation: Invocation): void {
  const { env } = invocation;
  command
    .command('status', { isDefault: true })
    .description('Whether it runs, and where')
    .action(() => status(invocation));
  command
    .command('start')
    .description('Start it, unless it runs')
    .action(async () => {
      await invocation.progress('Starting the local server').during(ensureDaemon(env));
      await status(invocation);
    });
  command
    .command('stop')
    .description('Stop it; the sandboxes live on')
    .action(async () => {
      const { printer } = invocation;
      const stopped = await invocation
        .progress('Stopping the local server')
        .during(stopDaemon(daemonFiles(env)));
      printer.result({ stopped: stopped !== null, pid: stopped?.pid ?? null }, () =>
        printer.note(stopped === null ? 'It was not running.' : `Stopped (pid ${stopped.pid}).`),
      );
    });
  command
    .command('restart')
    .description('Stop it and start it again')
    .action(async () => {
      await invocation.progress('Stopping the local server').during(stopDaemon(daemonFiles(env)));
      await invocation.progress('Starting the local server').during(ensureDaemon(env));
      await status(invocation);
    });
}
