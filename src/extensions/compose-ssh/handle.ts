import { z } from 'zod';
import type { Json } from '../../contract/values/json.ts';
import { versionedHandle } from '../../core/ports/extension.ts';
import { EngineRecord, ROOTFUL } from './remote/engine-record.ts';
import { StackHandle } from './remote/stack-handle.ts';

const Data = StackHandle.extend({ secret_variables: z.array(z.string()), engine: EngineRecord });

/** Upgrades the first handles of version 1, which name neither the variables of secrets nor the engine. */
function upgrade(data: Json): Json {
  return { secret_variables: [], engine: { ...ROOTFUL }, ...(data as { [key: string]: Json }) };
}

export const handles = versionedHandle(Data, 2, upgrade);
