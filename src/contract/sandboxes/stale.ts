import { z } from 'zod';
import { boundedList } from '../values/bounded.ts';
import { DurationSeconds } from '../values/duration.ts';

/**
 * `expired`: its time is over and it is still there. `failed`: it failed and was not destroyed. `half-destroyed`: the record says
 * that it is gone and parts are left, or its teardown makes no progress. `orphaned`: it carries our mark and there is no record
 * of it. `unknown-owner`: its mark names another installation or none; it is never touched.
 */
export const StaleKind = z.enum(['expired', 'failed', 'half-destroyed', 'orphaned', 'unknown-owner']);
export type StaleKind = z.infer<typeof StaleKind>;

export const StaleItem = z
  .strictObject({
    kind: StaleKind,
    what: z.string().describe('The sandbox, or the name of what was found.'),
    workspace: z.string().nullable(),
    extension: z.string().nullable(),
    host: z.string().nullable(),
    owner: z.string().nullable().describe('Owner in its mark; null without a mark.'),
    since: z.string().nullable(),
    age_seconds: z.number().int().nullable().describe('null where the age is unknown.'),
    evidence: z.array(z.string()).describe('Why it is here.'),
  })
  .meta({ id: 'StaleItem' });
export type StaleItem = z.infer<typeof StaleItem>;

const Unseen = z
  .strictObject({ extension: z.string(), host: z.string().nullable(), detail: z.string() })
  .meta({ id: 'UnseenBackend' });

export const StaleReport = z
  .strictObject({
    items: z.array(StaleItem),
    unseen: z.array(Unseen).describe('Backends and hosts that did not answer: what they hold is not known.'),
    seen_at: z.string(),
  })
  .meta({ id: 'StaleReport' });
export type StaleReport = z.infer<typeof StaleReport>;

export const ReapRequest = z
  .strictObject({
    dry_run: z.boolean().default(true).describe('Only list what would be removed.'),
    older_than: DurationSeconds.optional().describe('Only what is so for this long.'),
    kinds: boundedList(z.array(StaleKind).max(5), 5)
      .optional()
      .describe('Only these. Default: all that are ours.'),
  })
  .meta({ id: 'ReapRequest' });
export type ReapRequest = z.infer<typeof ReapRequest>;

export const ReapReport = z
  .strictObject({
    dry_run: z.boolean(),
    items: z.array(
      StaleItem.extend({
        outcome: z.enum(['would-remove', 'removed', 'under-way', 'left-alone', 'failed']),
        detail: z.string().nullable(),
      }).meta({ id: 'ReapedItem' }),
    ),
    unseen: z.array(Unseen),
  })
  .meta({ id: 'ReapReport' });
export type ReapReport = z.infer<typeof ReapReport>;
