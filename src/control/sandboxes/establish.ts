import type { ErrorCode } from '../../contract/errors/errors.ts';
import { SandboxerError } from '../../contract/errors/errors.ts';
import { isEstablished, isSettledState } from '../../core/lifecycle/lifecycle.ts';
import type { SandboxRecord } from '../../core/lifecycle/sandbox.ts';
import { isoTime } from '../../core/ports/clock.ts';
import type { Control } from '../control.ts';
import { wrongParts } from '../lifecycle/edit/backend-error.ts';
import type { Claim } from '../lifecycle/lanes.ts';
import { isClaim } from '../lifecycle/lanes.ts';
import { firstWithin, waitForSandbox } from '../lifecycle/wait-for-sandbox.ts';

export interface WaitOptions {
  /** `false` answers as soon as the request is durable. */
  readonly wait: boolean;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

export interface Establishment {
  readonly sandbox: SandboxRecord;
  /** A living sandbox was found, or the request was a repetition. */
  readonly reused: boolean;
}

function isSettled(sandbox: SandboxRecord): boolean {
  return isSettledState(sandbox.state);
}

/** Throws the error that a waiting caller gets for a sandbox that did not become ready. */
export function requireEstablished(sandbox: SandboxRecord): void {
  if (isEstablished(sandbox.state) || !isSettled(sandbox)) return;
  const members = { sandbox_id: sandbox.id, uid: sandbox.uid, state: sandbox.state };
  if (sandbox.failure) {
    const { code, detail, remedy, at, creation, backend = sandbox.extensionId } = sandbox.failure;
    throw new SandboxerError(code as ErrorCode, detail, {
      members: { ...members, failed_at: isoTime(at) },
      remedy,
      ...(creation && { creation }),
      ...wrongParts(sandbox.failure),
      ...(backend && { backend }),
    });
  }
  throw new SandboxerError('SBX_CANCELLED', `The sandbox became ${sandbox.state} before it was ready.`, {
    members,
  });
}

/** Hands a fresh claim to the driver, and waits for the outcome if the caller does. */
export async function establish(
  control: Control,
  admitted: Claim | SandboxRecord,
  options: WaitOptions,
): Promise<Establishment> {
  const fresh = isClaim(admitted);
  const sandbox = fresh ? admitted.sandbox : admitted;
  const driven = fresh ? control.driver.resume(admitted) : Promise.resolve(sandbox);
  if (!options.wait) return { sandbox, reused: !fresh };
  const timeoutMs = options.timeoutMs ?? control.settings.waitMs;
  const endsAt = control.clock.now() + timeoutMs;
  const reached = await firstWithin(control, driven, timeoutMs, options.signal);
  const result =
    reached && isSettled(reached)
      ? reached
      : ((await waitForSandbox(control, sandbox.uid, isSettled, {
          timeoutMs: endsAt - control.clock.now(),
          signal: options.signal,
        })) ?? sandbox);
  requireEstablished(result);
  return { sandbox: result, reused: !fresh };
}
