import type { FaultRule, StubRequest } from '../../src/extensions/saas-stub/wire/protocol.ts';
import { FAULT_KINDS } from '../../src/extensions/saas-stub/wire/protocol.ts';
import type { Prng } from './prng.ts';

type Kind = FaultRule['kind'];

const MAKES: ReadonlySet<string> = new Set(['create', 'restore', 'fork']);
const ONLY_MAKES: ReadonlySet<Kind> = new Set(['late_create', 'stuck_provisioning']);
const ONLY_DELETES: ReadonlySet<Kind> = new Set(['stuck_teardown', 'partial_teardown']);

/** What the stub does to a request, and what the network does to it. */
export const BACKEND_FAULTS: readonly Kind[] = FAULT_KINDS;
export const NETWORK_FAULTS = ['request_lost', 'reply_lost', 'duplicated', 'delayed'] as const;
export type NetworkFault = (typeof NETWORK_FAULTS)[number];

/** Whether the rule means anything for this request. */
export function fits(kind: Kind, op: StubRequest['op']): boolean {
  if (ONLY_MAKES.has(kind)) return MAKES.has(op);
  if (ONLY_DELETES.has(kind)) return op === 'delete';
  return true;
}

function faultOp(op: StubRequest['op']): FaultRule['op'] {
  return op === 'wait_running' || op === 'wait_gone' ? 'get' : op;
}

function paramsFor(kind: Kind, prng: Prng): FaultRule['params'] {
  switch (kind) {
    case 'slow':
      return { ms: prng.pick([200, 2_000, 9_000]) };
    case 'late_create':
      return { ms: prng.pick([300, 3_000, 20_000]), hang: prng.chance(0.3) };
    case 'disappears':
      return { ms: prng.pick([0, 500, 10_000]) };
    case 'skewed_clock':
      return { ms: prng.pick([-30_000, -4_000, 4_000, 30_000]) };
    case 'error_before':
    case 'error_after':
      return { says: prng.chance(0.5) };
    case 'lost_reply':
      return { hang: prng.chance(0.3) };
    case 'partial_teardown':
      return { deletes: prng.between(1, 4) };
    case 'rate_limited':
      return { retry_after_seconds: 1 };
    default:
      return {};
  }
}

export function drawFault(op: StubRequest['op'], prng: Prng): FaultRule {
  let kind = prng.pick(BACKEND_FAULTS);
  while (!fits(kind, op)) kind = prng.pick(BACKEND_FAULTS);
  return { op: faultOp(op), kind, times: 1, params: paramsFor(kind, prng) };
}
