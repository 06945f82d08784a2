import { z } from 'zod';

const StackFinding = z
  .strictObject({
    kind: z
      .enum(['invalid', 'boundary'])
      .describe('`invalid`: no caller may run it. `boundary`: it reaches out of the sandbox; elevated only.'),
    service: z.string().nullable().describe('`null`: it is about the file as a whole.'),
    field: z.string(),
    detail: z.string(),
    remedy: z.string(),
  })
  .meta({ id: 'StackFinding' });

/** The plan of a compose stack, made without starting anything. */
export const StackPlan = z
  .strictObject({
    accepted: z.boolean(),
    file: z
      .string()
      .nullable()
      .describe('The one compose file that the engine would get; `null` where the stack is refused.'),
    services: z.array(z.string()),
    findings: z.array(StackFinding).describe('Fields that are refused, or allowed by `elevated`.'),
    notes: z.array(z.string()).describe('Fields that are left out or changed.'),
  })
  .meta({ id: 'StackPlan' });
export type StackPlan = z.infer<typeof StackPlan>;
