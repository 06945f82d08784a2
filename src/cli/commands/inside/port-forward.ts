import type { Server, Socket } from 'node:net';
import { createServer } from 'node:net';
import type { Command } from 'commander';
import type { SandboxerClient } from '../../../client/sandboxer-client.ts';
import type { PortPair } from '../../args/numbers.ts';
import { portPair } from '../../args/numbers.ts';
import { CommandFailure } from '../../failures/command-failure.ts';
import type { Invocation } from '../../invocation/invocation.ts';
import { exitCodeAfter, onInterrupts } from '../../process/interrupts.ts';

interface Flags {
  readonly address: string;
}

async function forward(client: SandboxerClient, id: string, remote: number, socket: Socket): Promise<void> {
  socket.on('error', () => {});
  const inside = await client.ports.connect(id, remote);
  inside.on('error', () => socket.destroy());
  socket.on('close', () => inside.destroy());
  socket.pipe(inside).pipe(socket);
}

function listen(server: Server, pair: PortPair, address: string): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause) => {
      const remedy = `Choose another port of this machine: [local:]${pair.remote}.`;
      reject(
        new CommandFailure(`Cannot listen: ${cause.message}`, { code: 'SBX_CLI_LISTEN', remedy, cause }),
      );
    });
    server.listen(pair.local, address, () => {
      const bound = server.address();
      resolve(typeof bound === 'object' && bound !== null ? bound.port : pair.local);
    });
  });
}

export function define(command: Command, invocation: Invocation): void {
  command
    .argument('<id>', 'the sandbox')
    .argument('<port...>', '[local:]remote, such as 8080 or 9000:8080; 0:8080 takes any that is free')
    .option('--address <address>', 'listen here', '127.0.0.1')
    .action(async (id: string, texts: string[], flags: Flags) => {
      const { printer } = invocation;
      const client = await invocation.client();
      await client.sandboxes.get(id);
      const servers: Server[] = [];
      // The handler is set before the port is announced, since an interrupt may follow.
      const interrupted = new Promise<void>((resolve) => {
        const end = (signal: Parameters<typeof exitCodeAfter>[0]) => {
          invocation.exitCode = signal === 'SIGINT' ? 0 : exitCodeAfter(signal);
          resolve();
        };
        onInterrupts({ first: end, again: end });
      });
      for (const pair of texts.map(portPair)) {
        const server = createServer({ allowHalfOpen: true }, (socket) => {
          forward(client, id, pair.remote, socket).catch((error: Error) => {
            printer.warn(`port ${pair.remote}: ${error.message}`);
            socket.destroy();
          });
        });
        const local = await listen(server, pair, flags.address);
        servers.push(server);
        const forwarded = { address: flags.address, local, remote: pair.remote };
        if (printer.json) printer.item(forwarded);
        else printer.line(`${flags.address}:${local} -> ${id}:${pair.remote}`);
      }
      await interrupted;
      for (const server of servers) server.close();
    });
}
