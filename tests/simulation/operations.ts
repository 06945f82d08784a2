import type { CreateSandboxRequest } from '../../src/contract/sandboxes/sandbox.ts';
import type { Control } from '../../src/control/control.ts';
import { createBudget } from '../../src/control/money/budgets.ts';
import { grantCredits } from '../../src/control/money/credits.ts';
import { createSandbox } from '../../src/control/sandboxes/create-sandbox.ts';
import { forkSandbox, restoreSnapshot } from '../../src/control/sandboxes/derive-sandbox.ts';
import { destroySandbox } from '../../src/control/sandboxes/destroy-sandbox.ts';
import { extendSandbox } from '../../src/control/sandboxes/extend-sandbox.ts';
import { getSandbox } from '../../src/control/sandboxes/get-sandbox.ts';
import { listSandboxes } from '../../src/control/sandboxes/list-sandboxes.ts';
import { pauseSandbox, resumeSandbox } from '../../src/control/sandboxes/pause-sandbox.ts';
import { recreateSandbox } from '../../src/control/sandboxes/recreate-sandbox.ts';
import { snapshotSandbox } from '../../src/control/sandboxes/snapshot-sandbox.ts';
import { deleteSnapshot } from '../../src/control/snapshots/manage-snapshots.ts';
import { openSandbox } from '../../src/control/use/use-sandbox.ts';
import type { Caller } from '../../src/core/tenancy/caller.ts';
import { PROFILE_IDS } from './catalogue.ts';
import type { Knowledge } from './operation-targets.ts';
import { snapshotTarget, target } from './operation-targets.ts';
import type { Prng } from './prng.ts';
import type { Scenario } from './scenario.ts';

export interface OperationContext {
  readonly control: Control;
  readonly knowledge: Knowledge;
  readonly signal: AbortSignal | undefined;
  sleep(ms: number): Promise<void>;
}

export interface Operation {
  /** Also the label of the transaction that accepts it. */
  readonly kind: string;
  /** For the trace. */
  describe(): string;
  readonly caller: Caller;
  readonly idempotencyKey?: string;
  readonly cancelAfterMs: number | null;
  perform(context: OperationContext): Promise<void>;
}

function caller(actor: Caller['actor'], workspaceId: string, keyId: string): Caller {
  return {
    actor,
    workspaceId,
    orgId: 'o1',
    keyId,
    scopes: new Set(['read', 'sandboxes', 'credits', 'billing']),
    local: false,
  };
}

const CALLERS = [
  caller('agt', 'w1', 'key-1'),
  caller('agt', 'w1', 'key-2'),
  caller('adm', 'w1', 'key-3'),
] as const;
const STRANGER = caller('agt', 'w2', 'key-9');

function learn(list: string[], value: string): void {
  if (!list.includes(value)) list.push(value);
  if (list.length > 24) list.shift();
}

function consumerOf(
  prng: Prng,
  scope: CreateSandboxRequest['scope'] | null,
): CreateSandboxRequest['consumer'] {
  if (scope === 'session') return { harness: 'h', session_id: `s${prng.between(1, 4)}` };
  if (scope === 'agent') return { harness: 'h', agent_id: `a${prng.between(1, 2)}` };
  return {};
}

function newCreate(prng: Prng): Operation {
  const scope = prng.weighted([
    [null, 6],
    ['session', 3],
    ['agent', 0.7],
    ['shared', 0.7],
  ] as const);
  const named = prng.chance(0.2) ? `c${prng.between(1, 6)}` : null;
  const variant = named === null ? prng.between(1, 3) : Number(named.slice(1)) + (prng.chance(0.1) ? 10 : 0);
  const request: CreateSandboxRequest = {
    ...(named !== null && { id: named }),
    profile: prng.pick(PROFILE_IDS),
    inputs: {},
    setup_metadata: { variables: { VARIANT: String(variant) } },
    ...(scope !== null && { scope }),
    ...(prng.chance(0.3) && { ttl: prng.pick([4, 12, 25]) }),
    consumer: consumerOf(prng, scope),
    labels: {},
    elevated: false,
  };
  const fixed = named === null ? request : { ...request, profile: 'profile.stub-plain', consumer: {} };
  if (named !== null) delete (fixed as { ttl?: number }).ttl;
  const idempotencyKey = prng.chance(0.4) ? `k${prng.uint32()}` : undefined;
  const wait = prng.chance(0.6);
  return {
    kind: 'create',
    describe: () => `create ${JSON.stringify(fixed)} key=${idempotencyKey} wait=${wait}`,
    caller: prng.chance(0.9) ? prng.pick(CALLERS) : STRANGER,
    ...(idempotencyKey !== undefined && { idempotencyKey }),
    cancelAfterMs: wait && prng.chance(0.12) ? prng.pick([1, 40, 900]) : null,
    async perform({ control, knowledge, signal }) {
      const options = {
        wait,
        ...(signal && { signal }),
        ...(idempotencyKey !== undefined && { idempotencyKey }),
      };
      const { sandbox } = await createSandbox(control, this.caller, { request: fixed, ...options });
      learn(knowledge.sandboxes, sandbox.id);
    },
  };
}

function create(prng: Prng, knowledge: Knowledge): Operation {
  if (knowledge.creates.length > 0 && prng.chance(0.15)) return prng.pick(knowledge.creates);
  const operation = newCreate(prng);
  knowledge.creates.push(operation);
  if (knowledge.creates.length > 10) knowledge.creates.shift();
  return operation;
}

type Perform = (context: OperationContext, by: Caller) => Promise<void>;

function simple(
  prng: Prng,
  kind: string,
  on: string,
  perform: Perform,
  by: Caller = prng.pick(CALLERS),
): Operation {
  return {
    kind,
    describe: () => `${kind} ${on} by ${by.keyId}`,
    caller: by,
    cancelAfterMs: null,
    perform: (c) => perform(c, by),
  };
}

function derived(prng: Prng, kind: 'restore' | 'fork', on: string): Operation {
  const idempotencyKey = prng.chance(0.3) ? `d${prng.uint32()}` : undefined;
  const options = { wait: prng.chance(0.5), ...(idempotencyKey !== undefined && { idempotencyKey }) };
  const request = prng.chance(0.2) ? { ttl: 10 } : {};
  const derive = (control: Control, by: Caller) =>
    kind === 'restore'
      ? restoreSnapshot(control, by, { snapshotId: on, request, ...options })
      : forkSandbox(control, by, { id: on, request, ...options });
  const operation = simple(prng, kind, on, async ({ control, knowledge }, by) => {
    const { sandbox } = await derive(control, by);
    learn(knowledge.sandboxes, sandbox.id);
  });
  return idempotencyKey === undefined ? operation : { ...operation, idempotencyKey };
}

function snapshot(prng: Prng, on: string): Operation {
  const idempotencyKey = prng.chance(0.3) ? `s${prng.uint32()}` : undefined;
  const request = { labels: {}, ...(prng.chance(0.4) && { retain: prng.pick([5, 30]) }) };
  const operation = simple(prng, 'snapshot', on, async ({ control, knowledge }, by) => {
    const taken = await snapshotSandbox(control, by, { id: on, request, idempotencyKey });
    learn(knowledge.snapshots, taken.id);
  });
  return idempotencyKey === undefined ? operation : { ...operation, idempotencyKey };
}

/** Uses it as an exec does: a channel, a note of the use, and a while in which something runs. */
function use(prng: Prng, on: string): Operation {
  const busyMs = prng.chance(0.4) ? prng.pick([50, 3_000, 20_000]) : 0;
  return simple(prng, 'use', on, async ({ control, sleep }, by) => {
    const { sandbox } = await openSandbox(control, by, { id: on, counts: true });
    if (busyMs === 0) return;
    const ended = control.activity.begin(sandbox.uid);
    await sleep(busyMs);
    ended();
  });
}

export function drawOperation(prng: Prng, knowledge: Knowledge): Operation {
  const kind = prng.weighted([
    ['create', 34],
    ['use', 12],
    ['destroy', 12],
    ['extend', 7],
    ['pause', 8],
    ['resume', 8],
    ['snapshot', 6],
    ['restore', 4],
    ['fork', 4],
    ['recreate', 6],
    ['look', 5],
    ['delete-snapshot', 3],
    ['grant', 1],
  ] as const);
  const on = target(prng, knowledge, kind);
  const wait = prng.chance(0.5);
  switch (kind) {
    case 'create':
      return create(prng, knowledge);
    case 'use':
      return use(prng, on);
    case 'snapshot':
      return snapshot(prng, on);
    case 'fork':
      return derived(prng, 'fork', on);
    case 'restore':
      return derived(prng, 'restore', snapshotTarget(prng, knowledge));
    case 'destroy':
      return simple(
        prng,
        kind,
        on,
        async (c, by) => void (await destroySandbox(c.control, by, { id: on, wait })),
      );
    case 'recreate':
      return simple(
        prng,
        kind,
        on,
        async (c, by) => void (await recreateSandbox(c.control, by, { id: on, wait })),
      );
    case 'pause':
      return simple(prng, kind, on, async (c, by) => void (await pauseSandbox(c.control, by, { id: on })));
    case 'resume':
      return simple(prng, kind, on, async (c, by) => void (await resumeSandbox(c.control, by, { id: on })));
    case 'extend': {
      const ttl = prng.pick([3, 15, 60, 500]);
      return simple(
        prng,
        kind,
        on,
        async (c, by) => void (await extendSandbox(c.control, by, { id: on, ttlSeconds: ttl })),
      );
    }
    case 'delete-snapshot': {
      const id = snapshotTarget(prng, knowledge);
      return simple(prng, kind, id, async (c, by) => void (await deleteSnapshot(c.control, by, { id })));
    }
    case 'grant':
      return grant(
        prng.pick([100_000, 1_000_000]),
        prng.chance(0.5) ? `ref-${prng.between(1, 3)}` : undefined,
      );
    case 'look':
      return simple(prng, kind, on, async (c, by) => {
        await listSandboxes(c.control, by, { limit: 5 });
        await getSandbox(c.control, by, { id: on });
      });
  }
}

/** An administrator decides what may be spent. */
export function limit(budget: NonNullable<Scenario['budget']>): Operation {
  const by = { ...CALLERS[2], workspaceId: 'w1' };
  const { limitMicroUsd: limit_micro_usd, ...fields } = budget;
  const request = { ...fields, limit_micro_usd, value: null, throttle_seconds: null, own_keys: false };
  return {
    kind: 'grant',
    describe: () => `budget ${limit_micro_usd} of ${budget.scope} in a ${budget.period}`,
    caller: by,
    cancelAfterMs: null,
    perform: async ({ control }) => void (await createBudget(control, by, request)),
  };
}

export function grant(amount: number, reference?: string, workspaceId = 'w1'): Operation {
  const by = { ...CALLERS[2], workspaceId };
  return {
    kind: 'grant',
    describe: () => `grant ${amount} ${reference}`,
    caller: by,
    cancelAfterMs: null,
    perform: async ({ control }) => {
      await grantCredits(control, by, {
        amount_micro_usd: amount,
        kind: 'grant',
        ...(reference !== undefined && { reference }),
      });
    },
  };
}
