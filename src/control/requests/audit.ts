import { SandboxerError } from '../../contract/errors/errors.ts';
import type { AuditQuery } from '../../core/ports/store/audit-store.ts';
import type { TransactionOptions, Tx } from '../../core/ports/store/store.ts';
import type { AuditDraft, AuditRecord } from '../../core/tenancy/audit.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { requireScope, visibleWorkspace } from '../../core/tenancy/caller.ts';
import type { ControlPorts } from '../ports/control-ports.ts';

export interface AuditSubject {
  /** The operationId of what was asked for. */
  readonly action: string;
  readonly target: string;
  /** The workspace it happened in, when that is not the caller's. */
  readonly workspaceId?: string;
  readonly details?: Readonly<Record<string, unknown>>;
}

export function auditDraft(
  deps: ControlPorts,
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

export interface Recorded<T> {
  readonly label: string;
  /** The operation, where no request names it. */
  readonly action: string;
  /** The id of what it was done to, or of what was made. */
  target(result: T): string;
  /** Whether the result is a change; always when left out. A result without a change is recorded with the answer. */
  changed?(result: T): boolean;
  readonly options?: TransactionOptions<T>;
}

function subjectOf({ trail }: Caller, action: string, id: string): AuditSubject {
  const named = trail?.target ?? '';
  if (named === '' || named === id) return { action: trail?.action ?? action, target: id };
  return { action: trail?.action ?? action, target: named, details: { made: id } };
}

/**
 * A change to what a workspace has, and the record of it, in one transaction: neither a crash nor a client that hangs up
 * leaves one without the other.
 */
export async function recordedTransaction<T>(
  deps: ControlPorts,
  caller: Caller,
  { label, action, target, changed = () => true, options }: Recorded<T>,
  work: (tx: Tx) => Promise<T>,
): Promise<T> {
  caller.trail?.writeEarlier();
  const result = await deps.store.transaction(
    label,
    async (tx) => {
      const done = await work(tx);
      if (changed(done)) {
        const subject = subjectOf(caller, action, target(done));
        await tx.audit.append([auditDraft(deps, caller, subject)]);
      }
      return done;
    },
    options,
  );
  const { trail } = caller;
  if (!trail) return result;
  trail.made = target(result);
  if (changed(result)) trail.written = true;
  return result;
}

/**
 * Writes the record of a use that begins in a sandbox, while it begins. The record outlasts this process once this resolves; no
 * caller may learn of the use before that.
 */
export async function recordBegun(deps: ControlPorts, caller: Caller): Promise<void> {
  const { trail } = caller;
  if (!trail || trail.written) return;
  trail.writeEarlier();
  const draft = auditDraft(deps, caller, { action: trail.action, target: trail.target });
  await deps.store.transaction('audit', (tx) => tx.audit.append([draft]), { answersEarly: () => true });
  trail.written = true;
}

interface Audited {
  readonly label: string;
  readonly subject: AuditSubject;
}

/**
 * Writes the change and its record in one transaction. A refused change writes neither: the refusal is recorded where it is
 * answered.
 */
export async function auditedTransaction<T>(
  deps: ControlPorts,
  caller: Caller,
  { label, subject }: Audited,
  work: (tx: Tx) => Promise<T>,
): Promise<T> {
  caller.trail?.writeEarlier();
  const result = await deps.store.transaction(label, async (tx) => {
    const done = await work(tx);
    await tx.audit.append([auditDraft(deps, caller, subject)]);
    return done;
  });
  if (caller.trail) caller.trail.written = true;
  return result;
}

export async function listAudit(
  deps: ControlPorts,
  caller: Caller,
  query: Omit<AuditQuery, 'workspaceId'>,
): Promise<readonly AuditRecord[]> {
  requireScope(caller, 'read');
  if (caller.actor !== 'adm')
    throw new SandboxerError('SBX_FORBIDDEN', 'Only an administrator reads the audit log.');
  return deps.store.read('audit', (tx) => tx.audit.list({ ...query, workspaceId: visibleWorkspace(caller) }));
}
