import { z } from 'zod';

/** The version of the HTTP API: the first path segment, and the handshake header. */
export const API_VERSION = 1;
/** The header in which a client names its API version; a server that does not support it answers 426. */
export const API_VERSION_HEADER = 'sandboxer-api-version';

export const ServerVersion = z
  .strictObject({
    product: z.literal('sand-boxer'),
    version: z.string(),
    api_version: z.number().int(),
    oldest_api_version: z.number().int(),
    installation_id: z.string(),
  })
  .meta({ id: 'ServerVersion' });
export type ServerVersion = z.infer<typeof ServerVersion>;
