import { z } from 'zod';
import { Profile } from '../../src/contract/profiles/profile.ts';
import type { Generator } from './generator.ts';

/** Subset of JSON Schema that zod writes for a profile. */
export interface JsonSchema {
  readonly $ref?: string;
  readonly $defs?: Readonly<Record<string, JsonSchema>>;
  readonly type?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: readonly string[];
  readonly anyOf?: readonly JsonSchema[];
  readonly items?: JsonSchema;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: JsonSchema | boolean;
}

/** Schema of a profile as a person may write it: durations and sizes as text, and everything with a default optional. */
export function profileJsonSchema(): JsonSchema {
  const { $schema, ...schema } = z.toJSONSchema(Profile, {
    io: 'input',
    target: 'draft-2020-12',
    override: ({ jsonSchema }) => {
      // zod's own name for a check that it also writes as a pattern; no validator knows it.
      if (jsonSchema.format === 'starts_with') delete jsonSchema.format;
    },
  });
  return { $schema, $id: 'urn:sand-boxer:profile:1', title: 'sand-boxer profile', ...schema } as JsonSchema;
}

export const profileSchema: Generator = {
  file: 'docs/reference/profile.schema.json',
  render: () => `${JSON.stringify(profileJsonSchema(), null, 2)}\n`,
};
