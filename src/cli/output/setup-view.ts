import type { SetupLog } from '../../contract/sandboxes/setup-log.ts';
import type { Printer } from './printer.ts';
import { waitText } from './relative-time.ts';

type Step = SetupLog['items'][number];

function endText({ exit_code, started_at, ended_at }: Step): string {
  const took = ended_at === null ? '' : ` after ${waitText(Date.parse(ended_at) - Date.parse(started_at))}`;
  if (exit_code === null) return `ended with its attempt${took}`;
  return exit_code === 0 ? `done${took}` : `ended with ${exit_code}${took}`;
}

/** Returns whether a sandbox has instructions or setup output. */
export function hasSetup({ instructions, instructions_ref, items }: SetupLog): boolean {
  return instructions !== '' || instructions_ref !== null || items.length > 0;
}

/** Prints the instructions and the output of the commands on stdout; each command and its end on stderr. */
export function printSetup(printer: Printer, log: SetupLog): void {
  printer.result(log, () => {
    const { instructions, instructions_ref } = log;
    if (instructions_ref !== null) printer.details([['instructions', instructions_ref]]);
    if (instructions !== '') {
      printer.note('instructions:');
      printer.line(instructions);
    }
    const retried = log.items.some(({ generation, attempt }) => generation > 1 || attempt > 1);
    for (const step of log.items) {
      const { generation, attempt, extension, command, output, truncated } = step;
      const place = retried ? `generation ${generation}, attempt ${attempt}, ${extension} ` : '';
      printer.note(`${place}$ ${command}`);
      if (truncated) printer.note('… (the beginning is not kept)');
      if (output !== '') printer.line(output.replace(/\n$/, ''));
      printer.note(endText(step));
    }
  });
}
