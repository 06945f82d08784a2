import { z } from 'zod';

/** Parts of a root file system below the sandbox's own writes. Stored with every sandbox and snapshot. */
export const RootFsShape = {
  /** Layers, topmost first, relative to the base; the writable part lies above them. */
  layers: z.array(z.string()).min(1),
  /** Directories of the host that lie below the layers, by name: `usr`. None for an image of its own. */
  host: z.array(z.string()).default(['usr']),
  /** Process settings of an image; `null`: the defaults of the image `host`. */
  process: z
    .strictObject({
      env: z.record(z.string(), z.string()),
      user: z.string().nullable(),
      cwd: z.string().nullable(),
    })
    .default({ env: {}, user: null, cwd: null }),
};
const RootFs = z.strictObject(RootFsShape);
export type RootFs = Readonly<z.infer<typeof RootFs>>;

/** Returns only these fields of a larger object. */
export function rootFsOf({ layers, host, process }: RootFs): RootFs {
  return { layers, host, process };
}

export const OUR_PROCESS: RootFs['process'] = { env: {}, user: null, cwd: null };

/** Returns the fields for the spawner. */
export function rootFsFields({ layers, host }: RootFs): { layers: string; host: string } {
  return { layers: layers.join(':'), host: host.join(':') };
}
