import { z } from 'zod';
import { SandboxerError } from '../../../contract/errors/errors.ts';
import { RouteCeiling } from '../../../contract/routing/route.ts';
import {
  CreateOrgRequest,
  CreateWorkspaceRequest,
  Org,
  RenameTenantRequest,
  Workspace,
} from '../../../contract/tenancy/tenancy.ts';
import { OrgId, WorkspaceId } from '../../../contract/values/ids.ts';
import type { LeftCredits } from '../../../control/money/clear-purses.ts';
import {
  createOrg,
  createWorkspace,
  deleteOrg,
  deleteWorkspace,
  getOrg,
  getWorkspace,
  listOrgs,
  listWorkspaces,
  renameOrg,
  renameWorkspace,
  setWorkspacePolicy,
} from '../../../control/tenancy/tenants.ts';
import { presentOrg, presentWorkspace } from '../../present/webhooks.ts';
import { json, jsonBody, nothing, route } from '../../route/route.ts';

const OrgList = z.strictObject({ items: z.array(Org) }).meta({ id: 'OrgList' });
const WorkspaceList = z.strictObject({ items: z.array(Workspace) }).meta({ id: 'WorkspaceList' });
const orgParams = z.strictObject({ org_id: OrgId });
const workspaceParams = z.strictObject({ workspace_id: WorkspaceId });
const leftCredits = z.strictObject({
  credits: z
    .enum(['move', 'expire'])
    .optional()
    .describe('Treatment of remaining credits: moved to `to`, or taken back.'),
  to: WorkspaceId.optional().describe('With `credits=move`: the workspace that gets them.'),
});

function leftOf({ credits, to }: z.infer<typeof leftCredits>): LeftCredits {
  if (credits === 'move' && to !== undefined) return { kind: 'move', to };
  if (credits !== 'move' && to === undefined) return { kind: credits ?? 'none' };
  throw new SandboxerError('SBX_INVALID_REQUEST', '`credits=move` and `to` go together.', {
    remedy: 'Name the workspace that gets the credits in `to`, with `credits=move`.',
  });
}
const tag = 'tenants';
const scope = 'server';

export const tenantRoutes = [
  route({
    method: 'POST',
    url: '/v1/orgs',
    operationId: 'createOrg',
    summary: 'Make an org: one bill for its workspaces.',
    tag,
    scope,
    body: jsonBody(CreateOrgRequest),
    responses: { 201: json(Org, 'The org.') },
    async handler({ services, caller, body }) {
      const org = await createOrg(services.control, caller, {
        id: body.org_id,
        name: body.name ?? body.org_id,
      });
      return { status: 201, body: presentOrg(org) };
    },
  }),
  route({
    method: 'GET',
    url: '/v1/orgs',
    operationId: 'listOrgs',
    summary: 'List the orgs.',
    tag,
    scope,
    responses: { 200: json(OrgList, 'The orgs.') },
    async handler({ services, caller }) {
      return { status: 200, body: { items: (await listOrgs(services.control, caller)).map(presentOrg) } };
    },
  }),
  route({
    method: 'GET',
    url: '/v1/orgs/{org_id}',
    operationId: 'getOrg',
    summary: 'Show an org.',
    tag,
    scope,
    params: orgParams,
    responses: { 200: json(Org, 'The org.') },
    async handler({ services, caller, params }) {
      return { status: 200, body: presentOrg(await getOrg(services.control, caller, { id: params.org_id })) };
    },
  }),
  route({
    method: 'PATCH',
    url: '/v1/orgs/{org_id}',
    operationId: 'renameOrg',
    summary: 'Give an org another name.',
    tag,
    scope,
    params: orgParams,
    body: jsonBody(RenameTenantRequest),
    responses: { 200: json(Org, 'The org.') },
    async handler({ services, caller, params, body }) {
      return {
        status: 200,
        body: presentOrg(await renameOrg(services.control, caller, { id: params.org_id, name: body.name })),
      };
    },
  }),
  route({
    method: 'DELETE',
    url: '/v1/orgs/{org_id}',
    operationId: 'deleteOrg',
    summary: 'Delete an org that has no workspaces. Its id is never given again.',
    tag,
    scope,
    params: orgParams,
    responses: { 204: nothing('It is gone.') },
    async handler({ services, caller, params }) {
      await deleteOrg(services.control, caller, { id: params.org_id });
      return { status: 204, body: undefined };
    },
  }),
  route({
    method: 'POST',
    url: '/v1/workspaces',
    operationId: 'createWorkspace',
    summary:
      'Make a workspace. An administrator of the server acts in it with the header `sandboxer-workspace`.',
    tag,
    scope,
    body: jsonBody(CreateWorkspaceRequest),
    responses: { 201: json(Workspace, 'The workspace.') },
    async handler({ services, caller, body }) {
      const { workspace_id: id, org_id: orgId, name = id } = body;
      const workspace = await createWorkspace(services.control, caller, { id, orgId, name });
      return { status: 201, body: presentWorkspace(workspace) };
    },
  }),
  route({
    method: 'GET',
    url: '/v1/workspaces',
    operationId: 'listWorkspaces',
    summary: 'List the workspaces.',
    tag,
    scope,
    query: z.strictObject({ org: OrgId.optional() }),
    responses: { 200: json(WorkspaceList, 'The workspaces.') },
    async handler({ services, caller, query }) {
      const workspaces = await listWorkspaces(services.control, caller, { orgId: query.org ?? null });
      return { status: 200, body: { items: workspaces.map(presentWorkspace) } };
    },
  }),
  route({
    method: 'GET',
    url: '/v1/workspaces/{workspace_id}',
    operationId: 'getWorkspace',
    summary: 'Show a workspace.',
    tag,
    scope,
    params: workspaceParams,
    responses: { 200: json(Workspace, 'The workspace.') },
    async handler({ services, caller, params }) {
      const workspace = await getWorkspace(services.control, caller, { id: params.workspace_id });
      return { status: 200, body: presentWorkspace(workspace) };
    },
  }),
  route({
    method: 'PATCH',
    url: '/v1/workspaces/{workspace_id}',
    operationId: 'renameWorkspace',
    summary: 'Give a workspace another name.',
    tag,
    scope,
    params: workspaceParams,
    body: jsonBody(RenameTenantRequest),
    responses: { 200: json(Workspace, 'The workspace.') },
    async handler({ services, caller, params, body }) {
      const workspace = await renameWorkspace(services.control, caller, {
        id: params.workspace_id,
        name: body.name,
      });
      return { status: 200, body: presentWorkspace(workspace) };
    },
  }),
  route({
    method: 'PUT',
    url: '/v1/workspaces/{workspace_id}/policy',
    operationId: 'setWorkspacePolicy',
    summary: 'Say what sandboxes of a workspace may be routed to. Requests can only narrow it.',
    tag,
    scope,
    params: workspaceParams,
    body: jsonBody(RouteCeiling),
    responses: { 200: json(Workspace, 'The workspace.') },
    async handler({ services, caller, params, body }) {
      const workspace = await setWorkspacePolicy(services.control, caller, {
        id: params.workspace_id,
        policy: body,
      });
      return { status: 200, body: presentWorkspace(workspace) };
    },
  }),
  route({
    method: 'DELETE',
    url: '/v1/workspaces/{workspace_id}/policy',
    operationId: 'clearWorkspacePolicy',
    summary: 'Let sandboxes of a workspace be routed to any backend.',
    tag,
    scope,
    params: workspaceParams,
    responses: { 200: json(Workspace, 'The workspace.') },
    async handler({ services, caller, params }) {
      const workspace = await setWorkspacePolicy(services.control, caller, {
        id: params.workspace_id,
        policy: null,
      });
      return { status: 200, body: presentWorkspace(workspace) };
    },
  }),
  route({
    method: 'DELETE',
    url: '/v1/workspaces/{workspace_id}',
    operationId: 'deleteWorkspace',
    summary:
      'Delete a workspace without sandboxes and snapshots. Its keys end; its id is never given again. Credits that it has are moved or expire, or it is not deleted.',
    tag,
    scope,
    params: workspaceParams,
    query: leftCredits,
    responses: { 204: nothing('It is gone.') },
    async handler({ services, caller, params, query }) {
      await deleteWorkspace(services.control, caller, { id: params.workspace_id, left: leftOf(query) });
      return { status: 204, body: undefined };
    },
  }),
];
