import type { SandboxSession } from '../../../core/ports/session.ts';

/** A session that knows whether its connection is still open. */
export interface Channel {
  readonly session: SandboxSession;
  readonly isLost: boolean;
}
