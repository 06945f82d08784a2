import { spawn } from 'node:child_process';
import { once } from 'node:events';

export interface TerminalOptions {
  readonly columns: number;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

/** Of util-linux. */
export const SCRIPT_PROGRAM: string = 'script';

/** Runs a shell command in a terminal of that width and gives everything it showed. */
export async function inTerminal(
  command: string,
  options: TerminalOptions,
): Promise<{ text: string; code: number }> {
  const line = `stty cols ${options.columns} rows 40 -echo; ${command}`;
  const child = spawn(SCRIPT_PROGRAM, ['--quiet', '--return', '--command', line, '/dev/null'], {
    cwd: options.cwd,
    env: { ...options.env, TERM: 'xterm-256color', SHELL: '/bin/sh' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (part: string) => {
    text += part;
  });
  const [code] = (await once(child, 'close')) as [number];
  return { text, code };
}
