import { describe, expect, it } from 'vitest';
import { COMMAND_TABLE } from '../command-table.ts';
import { candidatesFor } from './candidates.ts';

function nobody(): never {
  throw new Error('A server was asked.');
}

async function offered(line: string): Promise<string[]> {
  return (await candidatesFor(line.split(' '), { table: COMMAND_TABLE, connect: nobody })).map(
    ({ value }) => value,
  );
}

describe('candidatesFor', () => {
  it.each([
    ['prof', ['profiles']],
    ['ho', ['hosts', 'host']],
    ['complet', ['completion']],
    ['--js', ['--json']],
    ['profiles ', ['list', 'show', 'push', 'validate']],
    ['profiles s', ['show']],
    // A chosen subcommand is no longer completed.
    ['profiles list ', []],
    ['profiles list s', []],
    ['host dr', ['drain']],
    ['--json profiles --quiet s', ['show']],
    ['--url http://x profiles s', ['show']],
    ['keys create --ac', ['--actor']],
    ['keys list --ac', []],
    ['keys create --actor ', ['adm', 'agt', 'atm']],
    ['keys create --actor=', []],
    ['keys create --actor = a', ['adm', 'agt', 'atm']],
    ['keys create --scope read --scope sa', ['sandboxes']],
    ['list --state re', ['requested', 'ready']],
    ['completion ', ['bash', 'zsh', 'fish']],
    ['kill box p1 --signal SIGK', ['SIGKILL']],
    ['credits purse default s', ['shared', 'split']],
    // New names have no candidates, nor do arguments of a program.
    ['create --id ', []],
    ['workspaces create ', []],
    ['exec box ', []],
    ['exec box ls --', []],
    ['exec box -- --', []],
    ['run --keep -- l', []],
    ['run --kee', ['--keep']],
    // Paths are completed by the shell.
    ['profiles push ', []],
    ['create --mirror ', []],
    ['nonsense ', []],
  ])('%s', async (line, values) => {
    expect(await offered(line)).toEqual(values);
  });

  it('candidatesFor gives a description with each candidate', async () => {
    const [found] = await candidatesFor(['hosts', 'dra'], { table: COMMAND_TABLE, connect: nobody });
    expect(found).toEqual({ value: 'drain', description: 'Place nothing new on it' });
  });

  it('candidatesFor asks a server only for what only a server knows', async () => {
    const asked: string[] = [];
    for (const line of [
      'get ',
      'create --profile ',
      'hosts drain ',
      'restore ',
      'cp ',
      'exec ',
      'run --host ',
    ]) {
      const connect = () => {
        asked.push(line);
        throw new Error('There is none.');
      };
      await candidatesFor(line.split(' '), { table: COMMAND_TABLE, connect }).catch(() => {});
    }
    expect(asked).toHaveLength(7);
  });
});
