import type { RouteCeiling } from '../../contract/routing/route.ts';
import type {
  CreateOrgRequest,
  CreateWorkspaceRequest,
  Org,
  Workspace,
} from '../../contract/tenancy/tenancy.ts';
import { pathOf, queryOf } from '../transport/path-of.ts';
import type { CallOptions, Transport } from '../transport/transport.ts';
import type { InputOf } from './schema-types.ts';

interface Items<T> {
  readonly items: readonly T[];
}

/** Organisations, which own credits, and their workspaces, which own everything else. */
export class Tenants {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  createOrg(request: InputOf<typeof CreateOrgRequest>, options: CallOptions = {}): Promise<Org> {
    return this.#transport.json({ ...options, method: 'POST', path: '/v1/orgs', json: request });
  }

  listOrgs(options: CallOptions = {}): Promise<Items<Org>> {
    return this.#transport.json({ ...options, method: 'GET', path: '/v1/orgs' });
  }

  getOrg(id: string, options: CallOptions = {}): Promise<Org> {
    return this.#transport.json({ ...options, method: 'GET', path: pathOf('orgs', id) });
  }

  renameOrg(id: string, name: string, options: CallOptions = {}): Promise<Org> {
    return this.#transport.json({ ...options, method: 'PATCH', path: pathOf('orgs', id), json: { name } });
  }

  deleteOrg(id: string, options: CallOptions = {}): Promise<void> {
    return this.#transport.json({ ...options, method: 'DELETE', path: pathOf('orgs', id) });
  }

  createWorkspace(
    request: InputOf<typeof CreateWorkspaceRequest>,
    options: CallOptions = {},
  ): Promise<Workspace> {
    return this.#transport.json({ ...options, method: 'POST', path: '/v1/workspaces', json: request });
  }

  listWorkspaces(
    query: { readonly org?: string } = {},
    options: CallOptions = {},
  ): Promise<Items<Workspace>> {
    const path = `/v1/workspaces${queryOf({ ...query })}`;
    return this.#transport.json({ ...options, method: 'GET', path });
  }

  getWorkspace(id: string, options: CallOptions = {}): Promise<Workspace> {
    return this.#transport.json({ ...options, method: 'GET', path: pathOf('workspaces', id) });
  }

  renameWorkspace(id: string, name: string, options: CallOptions = {}): Promise<Workspace> {
    const path = pathOf('workspaces', id);
    return this.#transport.json({ ...options, method: 'PATCH', path, json: { name } });
  }

  /** Sets the policy; `null` allows every backend. */
  setPolicy(id: string, policy: RouteCeiling | null, options: CallOptions = {}): Promise<Workspace> {
    const path = pathOf('workspaces', id, 'policy');
    return policy === null
      ? this.#transport.json({ ...options, method: 'DELETE', path })
      : this.#transport.json({ ...options, method: 'PUT', path, json: policy });
  }

  /** Deletes a workspace. `left`: the destination of its remaining credits. */
  deleteWorkspace(
    id: string,
    left: { readonly credits?: 'move' | 'expire' | undefined; readonly to?: string | undefined } = {},
    options: CallOptions = {},
  ): Promise<void> {
    const path = `${pathOf('workspaces', id)}${queryOf({ ...left })}`;
    return this.#transport.json({ ...options, method: 'DELETE', path });
  }
}
