import { z } from 'zod';
import { Upload, UploadEntry, UploadId, UploadPage } from '../../contract/assets/upload.ts';
import { deleteUpload, getUpload, listUploads, uploadEntries } from '../../control/assets/manage-uploads.ts';
import { stageUpload } from '../../control/assets/stage-upload.ts';
import { Upload as UploadBody } from '../exchange/read-body.ts';
import { cursor, wholeNumber } from '../parse/query-schemas.ts';
import { json, nothing, route, STREAMED } from '../route/route.ts';
import { NDJSON } from '../streams/stream-item.ts';

const UploadPathParams = z.strictObject({ upload_id: UploadId });
const tag = 'uploads';

export const uploadRoutes = [
  route({
    method: 'POST',
    url: '/v1/uploads',
    operationId: 'createUpload',
    summary: 'Upload a file tree for a sandbox to start with.',
    tag,
    scope: 'sandboxes',
    body: {
      kind: 'stream',
      mediaTypes: ['application/x-tar', 'application/octet-stream'],
      description: 'A tar archive of files, directories and links that stay inside it.',
    } as const,
    responses: { 201: json(Upload, 'What a create names as `upload:<upload_id>`.', ['Location']) },
    async handler({ services, exchange, caller }) {
      const { control, limits, present } = services;
      const body = new UploadBody(exchange, limits.uploadBytes, limits.idleUploadMs);
      const record = await body.into((archive) =>
        stageUpload(control, caller, { archive, signal: exchange.signal }),
      );
      const headers = { location: present.uploadUrl(record.id) };
      return { status: 201, body: present.upload(record), headers };
    },
  }),
  route({
    method: 'GET',
    url: '/v1/uploads',
    operationId: 'listUploads',
    summary: 'List uploads, newest first.',
    tag,
    scope: 'read',
    query: z.strictObject({ limit: wholeNumber(1, 500).default(100), cursor: cursor.optional() }),
    responses: { 200: json(UploadPage, 'A page of uploads.') },
    async handler({ services, caller, query }) {
      const page = await listUploads(services.control, caller, {
        limit: query.limit,
        cursor: query.cursor ?? null,
      });
      const items = page.items.map((record) => services.present.upload(record));
      return { status: 200, body: { items, next_cursor: page.nextCursor } };
    },
  }),
  route({
    method: 'GET',
    url: '/v1/uploads/{upload_id}',
    operationId: 'getUpload',
    summary: 'Show one upload.',
    tag,
    scope: 'read',
    params: UploadPathParams,
    responses: { 200: json(Upload, 'The upload.') },
    async handler({ services, caller, params }) {
      const record = await getUpload(services.control, caller, { id: params.upload_id });
      return { status: 200, body: services.present.upload(record) };
    },
  }),
  route({
    method: 'GET',
    url: '/v1/uploads/{upload_id}/entries',
    operationId: 'listUploadEntries',
    summary: 'Entries of an upload.',
    tag,
    scope: 'read',
    params: UploadPathParams,
    responses: {
      200: { description: 'A document on each line.', content: { [NDJSON]: UploadEntry } },
    },
    async handler({ services, exchange, caller, params }) {
      exchange.response.once('close', services.slots.take(caller));
      const lines = await uploadEntries(services.control, caller, { id: params.upload_id });
      exchange.begin(200, { 'content-type': NDJSON });
      for await (const part of lines) await exchange.write(part);
      exchange.response.end();
      return STREAMED;
    },
  }),
  route({
    method: 'DELETE',
    url: '/v1/uploads/{upload_id}',
    operationId: 'deleteUpload',
    summary: 'Delete an upload that no sandbox was made from.',
    tag,
    scope: 'sandboxes',
    params: UploadPathParams,
    responses: { 204: nothing('It is gone.') },
    async handler({ services, caller, params }) {
      await deleteUpload(services.control, caller, { id: params.upload_id });
      return { status: 204, body: undefined };
    },
  }),
];
