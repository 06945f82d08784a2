import { z } from 'zod';

/**
 * The party whose fault an error is. `caller`: the request, what it brought, or a limit of its workspace. `key`: a vendor refused
 * the key it was asked with. `capacity`: the backend works and has no room. `host`: one machine, not the backend on others.
 * `backend`: the backend itself. `server`: sand-boxer or its configuration. Only `backend` and `host` count against the health
 * that other workspaces see.
 */
export const Fault = z
  .enum(['caller', 'key', 'capacity', 'host', 'backend', 'server'])
  .meta({ id: 'Fault', description: 'Whose fault an error is.' });
export type Fault = z.infer<typeof Fault>;
