import type { Command } from 'commander';
import type { Invocation } from '../../invocation/invocation.ts';
import type { Check } from './doctor-checks.ts';
import { checkBackends, checkMachine, checkServer, checkState } from './doctor-checks.ts';

export function define(command: Command, invocation: Invocation): void {
  command.action(async () => {
    const { printer } = invocation;
    const progress = invocation.progress('Looking around');
    const checks: Check[] = [...checkMachine(), ...(invocation.isLocal ? checkState(invocation.env) : [])];
    const server = await checkServer(invocation);
    checks.push(server);
    if (server.status === 'ok') checks.push(...(await checkBackends(invocation)));
    progress.stop();
    const ok = checks.every(({ status }) => status !== 'failed');
    printer.result({ ok, checks }, () => {
      const { green, red, yellow, dim } = printer.out;
      const mark = { ok: green('✓'), warning: yellow('!'), failed: red('✗') };
      const width = Math.max(...checks.map(({ name }) => name.length));
      for (const { name, status, detail, fix } of checks) {
        const lines = printer.wrapped(detail, width + 4).map(dim);
        printer.line(`${mark[status]} ${name.padEnd(width)}  ${lines.join(`\n${' '.repeat(width + 4)}`)}`);
        if (fix !== null) printer.line(`  ╰▶ ${printer.wrapped(fix, 5).join('\n     ')}`);
      }
    });
    if (!ok) invocation.exitCode = 1;
  });
}
