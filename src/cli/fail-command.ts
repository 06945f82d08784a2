import { exitCodeOf } from './failures/exit-code.ts';
import { printError } from './output/print-error.ts';
import type { Printer } from './output/printer.ts';

/** Ends a command that failed: prints the reason, and returns the exit code. */
export function failCommand(error: unknown, printer: Printer, runsProgram: boolean): number {
  printError(error, printer);
  return exitCodeOf(error, runsProgram);
}
