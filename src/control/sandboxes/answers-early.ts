import type { SandboxRecord } from '../../core/lifecycle/sandbox.ts';
import type { TransactionOptions } from '../../core/ports/store/store.ts';
import type { TakenUp } from '../lifecycle/driver.ts';
import type { Claim } from '../lifecycle/lanes.ts';
import { isClaim } from '../lifecycle/lanes.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
import type { WaitOptions } from './establish.ts';

/**
 * Whether the disk need not be waited for before the backend is called: a power cut that takes the commit takes what the
 * backend made of it, too. Not where a disk is to outlast the machine.
 */
function endsWithMachine(deps: ControlPorts, { steps, documents, sandbox }: Claim): boolean {
  if (steps.length === 0 || documents.recipe.persistence !== 'ephemeral') return false;
  return steps.every((step) => {
    const extensionId = 'attempt' in step ? step.attempt.extensionId : sandbox.extensionId;
    return extensionId !== null && deps.extensions.get(extensionId)?.header.endsWithMachine === true;
  });
}

/** Options for a request whose caller gets its answer only when the sandbox is settled. */
export function earlyWhenWaiting(
  deps: ControlPorts,
  { wait }: Pick<WaitOptions, 'wait'>,
): TransactionOptions<Claim | SandboxRecord> {
  return { answersEarly: (admitted) => wait && isClaim(admitted) && endsWithMachine(deps, admitted) };
}

/** As `earlyWhenWaiting`, for a sandbox that was there before. */
export function earlyWhenTaken(
  deps: ControlPorts,
  { wait }: Pick<WaitOptions, 'wait'> = { wait: true },
): TransactionOptions<TakenUp> {
  return { answersEarly: ({ claim }) => wait && claim !== null && endsWithMachine(deps, claim) };
}
