import { z } from 'zod';
import { SandboxId, SnapshotId } from '../../contract/ids.ts';
import {
  RenameSnapshotRequest,
  RestoreRequest,
  Snapshot,
  SnapshotPage,
  SnapshotRequest,
} from '../../contract/snapshot.ts';
import { restoreSnapshot } from '../../control/derive-sandbox.ts';
import { getSandbox } from '../../control/get-sandbox.ts';
import {
  deleteSnapshot,
  getSnapshot,
  listSnapshots,
  renameSnapshot,
} from '../../control/manage-snapshots.ts';
import { snapshotSandbox } from '../../control/snapshot-sandbox.ts';
import { idempotencyKeyOf } from '../idempotency-key.ts';
import { cursor, wholeNumber } from '../query-schemas.ts';
import { json, jsonBody, route } from '../route.ts';
import { ESTABLISHED, established, WaitReady, waitOptions } from './establishment.ts';
import { SandboxPathParams } from './sandbox-id.ts';

const SnapshotPathParams = z.strictObject({ snapshot_id: SnapshotId });
const tag = 'snapshots';

export const snapshotRoutes = [
  route({
    method: 'POST',
    url: '/v1/sandboxes/{id}/snapshots',
    operationId: 'snapshotSandbox',
    summary: 'Take a snapshot of a sandbox.',
    tag,
    scope: 'sandboxes',
    params: SandboxPathParams,
    headers: ['Idempotency-Key'],
    body: jsonBody(SnapshotRequest),
    responses: { 201: json(Snapshot, 'The snapshot.', ['Location']) },
    async handler({ services, exchange, caller, params, body }) {
      const { deps, options, present } = services;
      const { idempotencyKey } = idempotencyKeyOf(exchange);
      const snapshot = await snapshotSandbox(deps, options.driver, caller, params.id, body, idempotencyKey);
      const headers = { location: present.snapshotUrl(snapshot.id) };
      return { status: 201, body: present.snapshot(snapshot), headers };
    },
  }),
  route({
    method: 'GET',
    url: '/v1/snapshots',
    operationId: 'listSnapshots',
    summary: 'List snapshots, newest first.',
    tag,
    scope: 'read',
    query: z.strictObject({
      sandbox_id: SandboxId.optional().describe('Only snapshots of this sandbox.'),
      limit: wholeNumber(1, 500).default(100),
      cursor: cursor.optional(),
    }),
    responses: { 200: json(SnapshotPage, 'A page of snapshots.') },
    async handler({ services, caller, query }) {
      const { deps, present } = services;
      const source = query.sandbox_id === undefined ? null : await getSandbox(deps, caller, query.sandbox_id);
      const page = await listSnapshots(deps, caller, {
        ...(source && { sandboxUid: source.sandbox.uid }),
        limit: query.limit,
        cursor: query.cursor ?? null,
      });
      const items = page.items.map((record) => present.snapshot(record));
      return { status: 200, body: { items, next_cursor: page.nextCursor } };
    },
  }),
  route({
    method: 'GET',
    url: '/v1/snapshots/{snapshot_id}',
    operationId: 'getSnapshot',
    summary: 'Show one snapshot.',
    tag,
    scope: 'read',
    params: SnapshotPathParams,
    responses: { 200: json(Snapshot, 'The snapshot.') },
    async handler({ services, caller, params }) {
      const snapshot = await getSnapshot(services.deps, caller, params.snapshot_id);
      return { status: 200, body: services.present.snapshot(snapshot) };
    },
  }),
  route({
    method: 'PATCH',
    url: '/v1/snapshots/{snapshot_id}',
    operationId: 'renameSnapshot',
    summary: 'Name a snapshot, or take its name away.',
    tag,
    scope: 'sandboxes',
    params: SnapshotPathParams,
    body: jsonBody(RenameSnapshotRequest),
    responses: { 200: json(Snapshot, 'The snapshot.') },
    async handler({ services, caller, params, body }) {
      const snapshot = await renameSnapshot(services.deps, caller, params.snapshot_id, body.name);
      return { status: 200, body: services.present.snapshot(snapshot) };
    },
  }),
  route({
    method: 'DELETE',
    url: '/v1/snapshots/{snapshot_id}',
    operationId: 'deleteSnapshot',
    summary: 'Delete a snapshot.',
    tag,
    scope: 'sandboxes',
    params: SnapshotPathParams,
    responses: {
      200: json(Snapshot, 'It is deleted.'),
      202: json(Snapshot, 'It is being deleted.'),
    },
    async handler({ services, caller, params }) {
      const snapshot = await deleteSnapshot(services.deps, caller, params.snapshot_id);
      const status = snapshot.state === 'deleted' ? 200 : 202;
      return { status, body: services.present.snapshot(snapshot) };
    },
  }),
  route({
    method: 'POST',
    url: '/v1/snapshots/{snapshot_id}/restore',
    operationId: 'restoreSnapshot',
    summary: 'Make a new sandbox with the content of a snapshot.',
    tag,
    scope: 'sandboxes',
    params: SnapshotPathParams,
    query: WaitReady,
    headers: ['Idempotency-Key'],
    body: jsonBody(RestoreRequest),
    responses: ESTABLISHED,
    async handler({ services, exchange, caller, params, query, body }) {
      const options = { ...waitOptions(services, exchange, query), ...idempotencyKeyOf(exchange) };
      const { driver } = services.options;
      return established(
        services,
        await restoreSnapshot(services.deps, driver, caller, params.snapshot_id, body, options),
      );
    },
  }),
];
