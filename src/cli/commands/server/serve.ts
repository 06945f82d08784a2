import type { Command } from 'commander';
import { choice } from '../../args/choices.ts';
import type { Invocation } from '../../invocation/invocation.ts';

interface Flags {
  readonly listen?: string;
  readonly stateDir?: string;
  readonly socket?: string;
  readonly config?: string;
  readonly logLevel?: string;
}

function envOf(env: NodeJS.ProcessEnv, flags: Flags): NodeJS.ProcessEnv {
  return {
    ...env,
    ...(flags.listen === undefined ? {} : { SANDBOXER_LISTEN: flags.listen }),
    ...(flags.stateDir === undefined ? {} : { SANDBOXER_STATE_DIR: flags.stateDir }),
    ...(flags.socket === undefined ? {} : { SANDBOXER_SOCKET: flags.socket }),
    ...(flags.config === undefined ? {} : { SANDBOXER_CONFIG: flags.config }),
    ...(flags.logLevel === undefined ? {} : { SANDBOXER_LOG_LEVEL: flags.logLevel }),
  };
}

function stopSignal(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => resolve());
  });
}

export function define(command: Command, invocation: Invocation): void {
  command
    .option(
      '--listen <address:port>',
      'also on TCP, for callers with a key                 [SANDBOXER_LISTEN]',
    )
    .option('--state-dir <path>', 'database, socket and images                       [SANDBOXER_STATE_DIR]')
    .option('--socket <path>', 'the unix socket for callers on this machine       [SANDBOXER_SOCKET]')
    .option('--config <file>', 'configuration                                     [SANDBOXER_CONFIG]');
  choice(command, '--log-level <level>', {
    description: 'debug, info, warn, error or silent                [SANDBOXER_LOG_LEVEL]',
    values: ['debug', 'info', 'warn', 'error', 'silent'],
  }).action(async (flags: Flags) => {
    const { printer } = invocation;
    const env = envOf(invocation.env, flags);
    const [{ loadConfig }, { serve }] = await Promise.all([
      import('../../../main/config/config.ts'),
      import('../../../main/serve.ts'),
    ]);
    const stopped = stopSignal();
    const server = await serve({ config: loadConfig(env), env });
    const { socketPath, tcpAddress, adminKeyFile } = server;
    const ready = {
      ready: true,
      pid: process.pid,
      socket: socketPath,
      tcp: tcpAddress,
      admin_key_file: adminKeyFile,
    };
    if (printer.json || !process.stdout.isTTY) printer.item(ready);
    else {
      printer.details([
        ['listening', [`unix:${socketPath}`, tcpAddress].filter(Boolean).join('\n')],
        ['first key', adminKeyFile],
      ]);
    }
    await stopped;
    printer.note('Stopping; the sandboxes live on.');
    await server.stop();
  });
}
