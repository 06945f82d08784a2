/** The files that a federation of capability registries (reuse-surface) reads of a project, and their rules. */
import { z } from 'zod';
import { CapabilityVector } from './capability.ts';

const slug = z.string().regex(/^[a-z][a-z0-9-]*$/, 'Write lower-case letters, digits and hyphens.');
const slugs = z.array(slug).max(40);
const Sentence = z.string().min(1).max(600);
const Sentences = z.array(Sentence).max(40);

const CapabilityId = z
  .string()
  .regex(/^capability\.[a-z0-9]+(?:\.[a-z0-9-]+)+$/, 'Name it as "capability.<domain>.<name>".');

/** The agreement on the entry, not the quality of the software. */
export const CapabilityStatus = z.enum(['draft', 'reviewed', 'approved', 'deprecated']);
export type CapabilityStatus = z.infer<typeof CapabilityStatus>;

const Confidence = z.enum(['low', 'medium', 'high']);

/** Makes the schema of one dimension that the project judges itself: `D3` of `D0` to `D7`. */
function maturity(letter: string, most: number) {
  const level = levelOf(letter, most);
  return z.strictObject({ current: level, target: level, confidence: Confidence, rationale: Sentence });
}

function levelOf(letter: string, most: number) {
  return z
    .string()
    .regex(new RegExp(`^${letter}[0-${most}]$`), `Write a level from ${letter}0 to ${letter}${most}.`);
}

/** The fields of a capability that a federation indexes: the front matter of `registry/capabilities/<id>.md`. */
export const FederatedCapability = z.strictObject({
  id: CapabilityId,
  name: z.string().min(1).max(80),
  summary: Sentence,
  owner: slug,
  status: CapabilityStatus,
  domain: slug,
  tags: slugs.min(1),
  maturity: z.strictObject({ discovery: maturity('D', 7), availability: maturity('A', 7) }),
  external_evidence: z.strictObject({
    completeness: z.strictObject({
      level: levelOf('C', 6),
      confidence: Confidence,
      satisfied_expectations: Sentences,
      broken_expectations: Sentences,
      out_of_scope_expectations: Sentences,
    }),
    reliability: z.strictObject({
      level: levelOf('R', 6),
      confidence: Confidence,
      known_reliability_risks: Sentences,
    }),
  }),
  consumption_modes: z.array(z.string().min(1).max(80)).min(1).max(20),
  api: z.strictObject({ version: z.number().int(), openapi: z.string() }),
  operations: z.array(z.string()).min(1).max(100),
  extensions: z.array(z.string().regex(/^ext\.[a-z0-9-]+$/)).max(100),
  profiles: z.array(z.string().regex(/^profile\.[a-z0-9-]+@\d+\.\d+\.\d+$/)).max(1_000),
});
export type FederatedCapability = z.infer<typeof FederatedCapability>;

/** A row of the index; `vector` is `D5/A4/C2/R0`. */
export const CapabilityRow = z.strictObject({
  id: CapabilityId,
  name: z.string(),
  summary: z.string(),
  owner: slug,
  status: CapabilityStatus,
  domain: slug,
  tags: slugs,
  vector: z.string().regex(/^D[0-7]\/A[0-7]\/C[0-6]\/R[0-6]$/, 'Write it as "D5/A4/C2/R0".'),
  path: z.string(),
  consumption_modes: z.array(z.string()),
});
export type CapabilityRow = z.infer<typeof CapabilityRow>;

/** `registry/indexes/capabilities.yaml`: what a federation fetches. */
export const CapabilityIndex = z.strictObject({
  version: z.literal(1),
  domain: slug,
  capabilities: z.array(CapabilityRow).min(1).max(100),
});

/** `registry/extensions/<id>.yaml`. */
export const ListedExtension = z.strictObject({
  id: z.string().regex(/^ext\.[a-z0-9-]+$/),
  title: z.string().min(1).max(80),
  at_best: z.string().nullable(),
  capabilities: CapabilityVector,
});

/** `.repo-classification.yaml`, from which State Hub registers a repository. */
export const RepoClassification = z.strictObject({
  repo_classification: z.strictObject({
    standard: z.literal('Repo Classification Standard'),
    version: z.literal('1.0'),
    classified_at: z.string().regex(/^\d{4}-\d{2}-\d{2}$/, 'A date is written YYYY-MM-DD.'),
    category: z.enum(['experimental', 'research', 'project', 'tooling', 'product', 'business']),
    domain: slug,
    secondary_domains: slugs,
    capability_tags: slugs.min(1),
    business_stake: slugs,
    business_mechanics: slugs,
    notes: Sentence.optional(),
  }),
});

/** The row of an entry, as the index must have it. */
export function rowOf(entry: FederatedCapability, path: string): CapabilityRow {
  const { id, name, summary, owner, status, domain, tags, consumption_modes } = entry;
  const { discovery, availability } = entry.maturity;
  const { completeness, reliability } = entry.external_evidence;
  const vector = [discovery.current, availability.current, completeness.level, reliability.level].join('/');
  return { id, name, summary, owner, status, domain, tags, vector, path, consumption_modes };
}
