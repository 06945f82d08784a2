import type { FaultOp, FaultRule } from '../wire/protocol.ts';

/** Rules that modify a request; any number of them apply to one. */
const MODIFIERS: ReadonlySet<FaultRule['kind']> = new Set([
  'slow',
  'stuck_provisioning',
  'disappears',
  'duplicate_webhook',
  'skewed_clock',
]);

export interface ActiveRule {
  readonly rule: FaultRule;
  left: number | null;
}

export interface FaultBookState {
  readonly rules: readonly ActiveRule[];
  readonly bySandbox: readonly (readonly [string, readonly ActiveRule[]])[];
  readonly sandboxOf: readonly (readonly [string, string])[];
}

export interface TakenFaults {
  /** Rule that replaces the ordinary course of the request; at most one. */
  readonly outcome: FaultRule | null;
  readonly modifiers: readonly FaultRule[];
}

const MOST_KEPT = 10_000;

function put<Value>(map: Map<string, Value>, key: string, value: Value): void {
  const oldest = map.keys().next();
  if (map.size >= MOST_KEPT && !oldest.done) map.delete(oldest.value);
  map.set(key, value);
}

function activate(rule: FaultRule): ActiveRule {
  return { rule, left: rule.times ?? null };
}

/** The active rules, and how often each still applies. */
export class FaultBook {
  #rules: ActiveRule[] = [];
  readonly #bySandbox = new Map<string, ActiveRule[]>();
  /** Object name → sandbox uid, for requests that have only a name. */
  readonly #sandboxOf = new Map<string, string>();

  get rules(): readonly ActiveRule[] {
    return this.#rules;
  }

  set(rules: readonly FaultRule[]): void {
    this.#rules = rules.map(activate);
  }

  add(rule: FaultRule): void {
    this.#rules.push(activate(rule));
  }

  /** Adds rules that came with a sandbox. They count over all attempts at it: the first request decides. */
  adopt(name: string, sandboxUid: string, rules: readonly FaultRule[]): void {
    if (rules.length === 0) return;
    put(this.#sandboxOf, name, sandboxUid);
    if (!this.#bySandbox.has(sandboxUid)) put(this.#bySandbox, sandboxUid, rules.map(activate));
  }

  take(op: FaultOp, name: string | null): TakenFaults {
    const sandboxUid = name === null ? undefined : this.#sandboxOf.get(name);
    const own = sandboxUid === undefined ? [] : (this.#bySandbox.get(sandboxUid) ?? []);
    const modifiers: FaultRule[] = [];
    let outcome: FaultRule | null = null;
    for (const active of [...own, ...this.#rules]) {
      const { rule } = active;
      if (active.left === 0 || rule.op !== op) continue;
      if (rule.match?.name !== undefined && rule.match.name !== name) continue;
      const modifies = MODIFIERS.has(rule.kind);
      if (!modifies && outcome !== null) continue;
      if (active.left !== null) active.left -= 1;
      if (modifies) modifiers.push(rule);
      else outcome = rule;
    }
    return { outcome, modifiers };
  }

  toState(): FaultBookState {
    return structuredClone({
      rules: this.#rules,
      bySandbox: [...this.#bySandbox],
      sandboxOf: [...this.#sandboxOf],
    });
  }

  static fromState(state: FaultBookState): FaultBook {
    const book = new FaultBook();
    book.#rules = structuredClone([...state.rules]);
    for (const [uid, rules] of state.bySandbox) book.#bySandbox.set(uid, structuredClone([...rules]));
    for (const [name, uid] of state.sandboxOf) book.#sandboxOf.set(name, uid);
    return book;
  }
}
