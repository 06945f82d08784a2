import type { ExitStatus, Signal } from '../../contract/sandboxes/exec.ts';
import type { Invocation } from '../invocation/invocation.ts';
import { flushed } from '../output/flushed.ts';
import { exitCodeAfter, onInterrupts, onPassed } from '../process/interrupts.ts';
import { exitCodeWithout } from './lost-output.ts';
import { exitCodeFrom } from './run-in-sandbox.ts';

/**
 * Control of a remote program from outside: signals go to the program, as if it ran here; a second interrupt, or one before the
 * program runs, abandons it, and so does output that cannot be written.
 */
export class ProgramControl {
  readonly #invocation: Invocation;
  readonly #abort = new AbortController();
  #kill: ((signal: Signal) => Promise<void>) | null = null;
  #givenUp: number | null = null;
  #unwritten: number | null = null;

  constructor(invocation: Invocation) {
    this.#invocation = invocation;
  }

  /** Aborted when the program is abandoned. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** Called once the program runs, with a function that signals it. */
  started(kill: (signal: Signal) => Promise<void>): void {
    this.#kill = kill;
  }

  /** Runs `work`, which returns how the program ended. Resolves with the exit code of this command. */
  async during(work: () => Promise<ExitStatus>): Promise<number> {
    const invocation = this.#invocation;
    invocation.onOutputLost = (error) => {
      if (this.#unwritten !== null) return;
      const code = exitCodeWithout(error, invocation.printer);
      // A closed reader, such as `head`, takes nothing from a program that has ended.
      if (error.code !== 'EPIPE') this.#unwritten ??= code;
      this.#giveUp(code);
    };
    try {
      const code = exitCodeFrom(await work(), invocation);
      await flushed(process.stdout);
      return this.#unwritten ?? code;
    } catch (error) {
      if (this.#givenUp === null) throw error;
      return this.#givenUp;
    }
  }

  /** Returns a function that removes the handlers. */
  listen(): () => void {
    const releases = [
      onInterrupts({
        first: (signal) => {
          if (this.#kill) this.#kill(signal).catch(() => this.#giveUp(exitCodeAfter(signal)));
          else this.#giveUp(exitCodeAfter(signal));
        },
        again: (signal) => this.#giveUp(exitCodeAfter(signal)),
      }),
      onPassed((signal) => void this.#kill?.(signal).catch(() => {})),
    ];
    return () => {
      for (const release of releases) release();
    };
  }

  #giveUp(exitCode: number): void {
    this.#givenUp ??= exitCode;
    this.#abort.abort(new Error('The program is no longer listened to.'));
  }
}
