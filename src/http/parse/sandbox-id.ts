import { z } from 'zod';
import { SandboxId } from '../../contract/values/ids.ts';

/** The path parameter of everything below one sandbox. */
export const SandboxPathParams = z.strictObject({
  id: SandboxId.describe('The id of a sandbox, or its uid.'),
});
