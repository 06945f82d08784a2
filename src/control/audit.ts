import { SandboxerError } from '../contract/errors.ts';
import type { AuditDraft, AuditRecord } from '../core/audit.ts';
import type { Caller } from '../core/caller.ts';
import { requireScope, visibleWorkspace } from '../core/caller.ts';
import type { AuditQuery, Tx } from '../core/store.ts';
import type { ControlDeps } from './deps.ts';

export interface AuditSubject {
  /** The operationId of what was asked for. */
  readonly action: string;
  readonly target: string;
  /** The workspace it happened in, when that is not the caller's. */
  readonly workspaceId?: string;
  readonly details?: Readonly<Record<string, unknown>>;
}

export function auditDraft(
  deps: ControlDeps,
  caller: Caller,
  subject: AuditSubject,
  outcome = 'ok',
): AuditDraft {
  return {
    at: deps.clock.now(),
    workspaceId: subject.workspaceId ?? caller.workspaceId,
    keyId: caller.keyId,
    actor: caller.actor,
    consumer: caller.trail?.consumer ?? {},
    action: subject.action,
    target: subject.target.slice(0, 512),
    outcome,
    requestId: caller.trail?.requestId ?? null,
    details: subject.details ?? {},
  };
}

/** The change and the record of it are one transaction. What is refused leaves neither: the refusal is recorded by whoever answers it. */
export async function auditedTransaction<T>(
  deps: ControlDeps,
  caller: Caller,
  label: string,
  subject: AuditSubject,
  work: (tx: Tx) => Promise<T>,
): Promise<T> {
  const result = await deps.store.transaction(label, async (tx) => {
    const done = await work(tx);
    await tx.audit.append([auditDraft(deps, caller, subject)]);
    return done;
  });
  if (caller.trail) caller.trail.written = true;
  return result;
}

export async function listAudit(
  deps: ControlDeps,
  caller: Caller,
  query: Omit<AuditQuery, 'workspaceId'>,
): Promise<readonly AuditRecord[]> {
  requireScope(caller, 'read');
  if (caller.actor !== 'adm')
    throw new SandboxerError('SBX_FORBIDDEN', 'Only an administrator reads the audit log.');
  return deps.store.read('audit', (tx) => tx.audit.list({ ...query, workspaceId: visibleWorkspace(caller) }));
}
