import { exitCodeOf } from './failures/exit-code.ts';
import { printError } from './output/print-error.ts';
import type { Printer } from './output/printer.ts';

/** The end of a command that failed: says why, and gives the exit code. */
export function failCommand(error: unknown, printer: Printer, runsProgram: boolean): number {
  printError(error, printer);
  return exitCodeOf(error, runsProgram);
}
