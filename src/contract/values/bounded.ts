import { z } from 'zod';

/** Above this many entries they are tried one at a time first, and the first fault ends it: no issue is made of the rest. */
const TRIED_AT_ONCE = 64;

interface Fault {
  readonly path: readonly PropertyKey[];
  readonly message: string;
}
interface BoundedListDef extends z.core.$ZodArrayDef {
  readonly most: number;
}
interface BoundedRecordDef extends z.core.$ZodRecordDef {
  readonly most: number;
  readonly tooMany: string;
}

/** Checks a value before its schema does. A copy of the schema, such as `describe` makes, does so too. */
function judgeFirst(schema: z.core.$ZodType, judge: (value: unknown) => Fault | null): void {
  const { parse } = schema._zod;
  schema._zod.parse = (payload, context) => {
    const fault = judge(payload.value);
    if (!fault) return parse(payload, context);
    const { path, message } = fault;
    payload.issues.push({ code: 'custom', path: [...path], message, input: payload.value, inst: schema });
    // Checks of the length would look at the value and report the same once more.
    payload.value = undefined;
    return payload;
  };
}

const BoundedList = z.core.$constructor<z.ZodArray, BoundedListDef>('BoundedList', (inst, def) => {
  z.ZodArray.init(inst, def);
  judgeFirst(inst, (given) => {
    if (!Array.isArray(given) || given.length <= TRIED_AT_ONCE) return null;
    if (given.length > def.most) return firstFault(anyItems(def), given, []);
    for (const [at, entry] of given.entries()) {
      const fault = firstFault(def.element, entry, [at]);
      if (fault) return fault;
    }
    return null;
  });
});

const BoundedRecord = z.core.$constructor<z.ZodRecord, BoundedRecordDef>('BoundedRecord', (inst, def) => {
  z.ZodRecord.init(inst, def);
  judgeFirst(inst, (given) => {
    if (typeof given !== 'object' || given === null || Array.isArray(given)) return null;
    const count = countOf(given, def.most);
    if (count > def.most) return { path: [], message: def.tooMany };
    if (count <= TRIED_AT_ONCE) return null;
    const single = z.record(def.keyType as z.core.$ZodRecordKey, def.valueType);
    for (const [name, entry] of Object.entries(given)) {
      const fault = firstFault(single, { [name]: entry }, []);
      if (fault) return fault;
    }
    return null;
  });
});

/** Returns the same list with items of any type, for the message of its own `max`. */
function anyItems({ checks, most }: BoundedListDef): z.core.$ZodType {
  const list = z.array(z.any()).max(most);
  return checks ? new z.ZodArray({ ...list._zod.def, checks: checks.filter(isLength) }) : list;
}

function isLength(check: z.core.$ZodCheck<never>): boolean {
  return check._zod.def.check === 'max_length';
}

function countOf(value: object, most: number): number {
  let count = 0;
  for (const _ in value) {
    count += 1;
    if (count > most) break;
  }
  return count;
}

function firstFault(schema: z.core.$ZodType, value: unknown, path: readonly PropertyKey[]): Fault | null {
  const parsed = z.safeParse(schema, value);
  if (parsed.success) return null;
  const [issue] = parsed.error.issues;
  return { path: [...path, ...(issue?.path ?? [])], message: issue?.message ?? 'It is not valid.' };
}

/**
 * A map with free names, as requests bring it. The number of entries is looked at before any of them: the work is
 * bounded by `most`, not by what was sent.
 */
export function boundedRecord<S extends z.ZodRecord>(record: S, most: number, tooMany: string): S {
  return new BoundedRecord({ ...record._zod.def, most, tooMany }) as unknown as S;
}

/** A list, as requests bring it: its length is looked at before any item. `most` is the schema’s own `max`. */
export function boundedList<S extends z.ZodArray>(list: S, most: number): S {
  return new BoundedList({ ...list._zod.def, most }) as unknown as S;
}
