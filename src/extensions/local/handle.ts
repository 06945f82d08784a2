import { z } from 'zod';
import { versionedHandle } from '../../core/ports/extension.ts';

const HandleData = z.strictObject({
  attempt_id: z.string().min(1).max(200),
  owner: z.string().min(1).max(200),
});

export const handles = versionedHandle(HandleData, 1);
