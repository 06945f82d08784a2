import { z } from 'zod';
import { SandboxerError } from '../../contract/errors/errors.ts';
import type { Json } from '../../contract/values/json.ts';
import type { Handle, Stamp } from '../../core/ports/extension.ts';
import { versionedHandle } from '../../core/ports/extension.ts';
import type { Named } from './containers/labels.ts';
import { containerName, stampIn } from './containers/labels.ts';
import { BACKEND } from './engine/engine-error.ts';

/** Handle with the name of its container, which holds the stamp: a name of another form is refused. */
const HandleData = z
  .strictObject({
    container: z.string().min(1).max(1024),
    /** Variables of the recipe: a container that was started ahead has none of its own. */
    variables: z.record(z.string(), z.string()),
  })
  .transform(({ container, variables }, { addIssue }): Named => {
    const stamp = stampIn(container);
    if (stamp !== null) return { name: container, stamp, variables };
    addIssue({ code: 'custom', path: ['container'], message: 'It is not the name of a container of ours.' });
    return z.NEVER;
  });
const SnapshotRef = z.strictObject({ image: z.string().regex(/^[a-z0-9-]+:[\w.-]{1,128}$/) });

/** Upgrades the first handles of version 1, which have no variables. */
function upgrade(data: Json): Json {
  return { variables: {}, ...(data as { [key: string]: Json }) };
}

export const handles = versionedHandle(HandleData, 2, upgrade);

export function handleOf(stamp: Stamp, variables: Readonly<Record<string, string>> = {}): Handle {
  return handles.write({ container: containerName(stamp), variables: { ...variables } });
}

export function readSnapshotRef(ref: Json): string {
  const parsed = SnapshotRef.safeParse(ref);
  if (parsed.success) return parsed.data.image;
  throw new SandboxerError('SBX_EXTENSION_FAILED', 'The snapshot reference cannot be read.', {
    backend: BACKEND,
    creation: 'not_created',
  });
}
