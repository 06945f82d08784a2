import type { SandboxSession } from '../../../core/ports/session.ts';

/** A session that knows whether its connection still stands. */
export interface Channel {
  readonly session: SandboxSession;
  readonly isLost: boolean;
}
