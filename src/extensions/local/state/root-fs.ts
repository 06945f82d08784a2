import { z } from 'zod';

/** What a sandbox is made from, below what it writes itself. Kept with every sandbox and snapshot. */
export const RootFsShape = {
  /** Topmost first, relative to the base; the writable part lies above them. */
  layers: z.array(z.string()).min(1),
  /** Directories of the host that lie below the layers, by name: `usr`. None for an image of its own. */
  host: z.array(z.string()).default(['usr']),
  /** What an image says of the programs in it; `null` for what we know best ourselves. */
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

/** That alone, of something that has more. */
export function rootFsOf({ layers, host, process }: RootFs): RootFs {
  return { layers, host, process };
}

export const OUR_PROCESS: RootFs['process'] = { env: {}, user: null, cwd: null };

/** As the spawner is told. */
export function rootFsFields({ layers, host }: RootFs): { layers: string; host: string } {
  return { layers: layers.join(':'), host: host.join(':') };
}
