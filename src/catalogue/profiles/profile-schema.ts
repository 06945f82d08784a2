import { Profile } from '../../contract/profiles/profile.ts';
import type { FieldPath } from './profile-yaml.ts';

/** The part of a zod schema that is needed to say what could stand at a place. */
interface SchemaNode {
  readonly def: {
    readonly type: string;
    readonly innerType?: SchemaNode;
    readonly shape?: Readonly<Record<string, SchemaNode>>;
    readonly element?: SchemaNode;
    readonly valueType?: SchemaNode;
    readonly in?: SchemaNode;
  };
  safeParse(value: unknown): {
    readonly success: boolean;
    readonly error?: { readonly issues: readonly { readonly code?: string; readonly message: string }[] };
  };
}

/** The names that a map at this place of a profile may have; none when it is free or no map. */
export function knownKeysAt(path: FieldPath): string[] {
  return Object.keys(bare(schemaAt(path))?.def.shape ?? {});
}

/** Describes a valid value at this place, in the words of the schema. */
export function hintAt(path: FieldPath): string | null {
  const issue = schemaAt(path)?.safeParse('\u0000').error?.issues[0];
  const isInOurWords = issue?.code === 'invalid_format' && !issue.message.startsWith('Invalid');
  return isInOurWords ? issue.message : null;
}

function schemaAt(path: FieldPath): SchemaNode | undefined {
  return path.reduce<SchemaNode | undefined>(
    (schema, step) => {
      const def = bare(schema)?.def;
      return def?.shape?.[String(step)] ?? def?.element ?? def?.valueType;
    },
    Profile as unknown as SchemaNode,
  );
}

/** Returns the schema without the wrappers that only say “optional”, “null too” or “then transform”. */
function bare(schema: SchemaNode | undefined): SchemaNode | undefined {
  const inner = schema?.def.innerType ?? schema?.def.in;
  return inner ? bare(inner) : schema;
}
