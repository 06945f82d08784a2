import { z } from 'zod';
import {
  RenameSnapshotRequest,
  RestoreRequest,
  Snapshot,
  SnapshotPage,
  SnapshotRequest,
} from '../../contract/assets/snapshot.ts';
import { SandboxId, SnapshotId } from '../../contract/values/ids.ts';
import { restoreSnapshot } from '../../control/sandboxes/derive-sandbox.ts';
import { getSandbox } from '../../control/sandboxes/get-sandbox.ts';
import { snapshotSandbox } from '../../control/sandboxes/snapshot-sandbox.ts';
import { exportSnapshot } from '../../control/snapshots/export-snapshot.ts';
import { importSnapshot } from '../../control/snapshots/import-snapshot.ts';
import {
  deleteSnapshot,
  getSnapshot,
  listSnapshots,
  renameSnapshot,
} from '../../control/snapshots/manage-snapshots.ts';
import { Upload } from '../exchange/read-body.ts';
import { idempotencyKeyOf } from '../parse/idempotency-key.ts';
import { cursor, wholeNumber } from '../parse/query-schemas.ts';
import { SandboxPathParams } from '../parse/sandbox-id.ts';
import { json, jsonBody, route, STREAMED } from '../route/route.ts';
import { ESTABLISHED, established, WaitReady, waitOptions } from './establishment.ts';

const SnapshotPathParams = z.strictObject({ snapshot_id: SnapshotId });
const tag = 'snapshots';
const SNAPSHOT_FILE = ['application/octet-stream'] as const;

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
      const { control, present } = services;
      const { idempotencyKey } = idempotencyKeyOf(exchange);
      const snapshot = await snapshotSandbox(control, caller, {
        id: params.id,
        request: body,
        idempotencyKey,
      });
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
      const { control, present } = services;
      const source =
        query.sandbox_id === undefined ? null : await getSandbox(control, caller, { id: query.sandbox_id });
      const page = await listSnapshots(control, caller, {
        ...(source && { sandboxUid: source.sandbox.uid }),
        limit: query.limit,
        cursor: query.cursor ?? null,
      });
      const items = page.items.map((record) => present.snapshot(record));
      return { status: 200, body: { items, next_cursor: page.nextCursor } };
    },
  }),
  route({
    method: 'POST',
    url: '/v1/snapshots/import',
    operationId: 'importSnapshot',
    summary: 'Take a snapshot from a file that an export wrote.',
    tag,
    scope: 'sandboxes',
    query: z.strictObject({
      profile: z.string().max(128).optional().describe('What it is restored as. Default: as the file says.'),
      name: z.string().max(128).optional().describe('Default: the name in the file.'),
    }),
    body: { kind: 'stream', mediaTypes: SNAPSHOT_FILE, description: 'The file.' } as const,
    responses: { 201: json(Snapshot, 'The snapshot.', ['Location']) },
    async handler({ services, exchange, caller, query }) {
      const { control, limits, present } = services;
      const upload = new Upload(exchange, limits.uploadBytes, limits.idleUploadMs);
      const snapshot = await upload.into((body) =>
        importSnapshot(control, caller, { file: body, ...query, signal: exchange.signal }),
      );
      const headers = { location: present.snapshotUrl(snapshot.id) };
      return { status: 201, body: present.snapshot(snapshot), headers };
    },
  }),
  route({
    method: 'GET',
    url: '/v1/snapshots/{snapshot_id}/export',
    operationId: 'exportSnapshot',
    summary: 'A snapshot as one file, for an import here or elsewhere.',
    tag,
    scope: 'sandboxes',
    params: SnapshotPathParams,
    responses: { 200: { description: 'The file.', content: { 'application/octet-stream': null } } },
    async handler({ services, exchange, caller, params }) {
      exchange.response.once('close', services.slots.take(caller));
      const { body } = await exportSnapshot(services.control, caller, {
        id: params.snapshot_id,
        signal: exchange.signal,
      });
      exchange.begin(200, { 'content-type': SNAPSHOT_FILE[0], 'content-disposition': 'attachment' });
      for await (const chunk of body) await exchange.write(chunk);
      exchange.response.end();
      return STREAMED;
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
      const snapshot = await getSnapshot(services.control, caller, { id: params.snapshot_id });
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
      const snapshot = await renameSnapshot(services.control, caller, {
        id: params.snapshot_id,
        name: body.name,
      });
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
      const snapshot = await deleteSnapshot(services.control, caller, { id: params.snapshot_id });
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
      return established(
        services,
        await restoreSnapshot(services.control, caller, {
          snapshotId: params.snapshot_id,
          request: body,
          ...options,
        }),
      );
    },
  }),
];
