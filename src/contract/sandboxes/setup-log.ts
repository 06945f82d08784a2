import { z } from 'zod';

const SetupStep = z
  .strictObject({
    generation: z.int(),
    attempt: z.int(),
    extension: z.string(),
    command: z.string(),
    output: z
      .string()
      .describe('Output of both streams, in order. Secrets that the command could see are blotted out.'),
    truncated: z.boolean().describe('Whether earlier output was cut.'),
    exit_code: z.int().nullable().describe('`null` when it was ended with its attempt.'),
    started_at: z.string(),
    ended_at: z.string().nullable(),
  })
  .meta({ id: 'SetupStep', description: 'One command of a profile’s `setup.run`, as it went.' });

export const SetupLog = z
  .strictObject({
    instructions: z
      .string()
      .describe(
        'For the user of the sandbox: the instructions of its profile, then those of the request. Nothing runs them.',
      ),
    instructions_ref: z.string().nullable().describe('As the request named it; it is not fetched.'),
    items: z.array(SetupStep),
  })
  .meta({ id: 'SetupLog' });

export type SetupLog = z.infer<typeof SetupLog>;
