import { spawnSync } from 'node:child_process';
import type { InteractiveExec } from '../../client/streams/interactive-exec.ts';
import type { TerminalSize } from '../../contract/sandboxes/exec.ts';

/** Returns whether input and output are terminals. */
export function isTerminal(): boolean {
  return process.stdin.isTTY === true && process.stdout.isTTY === true;
}

export function terminalSize(): TerminalSize {
  const { columns, rows } = process.stdout.isTTY ? process.stdout : process.stderr;
  return { cols: columns || 80, rows: rows || 24 };
}

function takeKeys(): void {
  process.stdin.setRawMode(true);
  // Node leaves line ends to the terminal: a program that moves down one line would land in the first column.
  spawnSync('stty', ['-opost'], { stdio: ['inherit', 'ignore', 'ignore'] });
}

/**
 * Passes keys to the program as they are, Ctrl-C and Ctrl-Z included. While a signal stops this command, the terminal is as it
 * was. Returns a function that restores the terminal, which also happens however this process ends.
 */
export function takeTerminal(exec: InteractiveExec): () => void {
  const { stdin, stdout } = process;
  const raw = stdin.isTTY === true;
  const resize = () => void exec.resize(terminalSize());
  const restore = () => {
    if (raw) stdin.setRawMode(false);
  };
  const stop = () => {
    restore();
    process.kill(process.pid, 'SIGSTOP');
  };
  const goOn = () => {
    if (raw) takeKeys();
    resize();
  };
  // A lost terminal cannot be set any more; a signal reports the loss.
  const gone = () => {};
  stdin.on('error', gone);
  if (raw) takeKeys();
  stdout.on('resize', resize);
  process.on('exit', restore).on('SIGTSTP', stop).on('SIGCONT', goOn);
  return () => {
    stdout.off('resize', resize);
    process.off('exit', restore).off('SIGTSTP', stop).off('SIGCONT', goOn);
    restore();
    stdin.off('error', gone);
  };
}
