import type { Printer } from '../output/printer.ts';
import { exitCodeAfter } from '../process/interrupts.ts';

const BROKEN_PIPE = 141;
const FAILED = 125;

/** Returns the exit code of a remote program whose output can go nowhere: as if it had been run here. */
export function exitCodeWithout(error: NodeJS.ErrnoException, printer: Printer): number {
  if (error.code === 'EPIPE') return BROKEN_PIPE;
  // The terminal has gone.
  if (error.code === 'EIO') return exitCodeAfter('SIGHUP');
  printer.warn(`the output cannot be written: ${error.message}`);
  return FAILED;
}
