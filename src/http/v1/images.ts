import { z } from 'zod';
import { BuildImageRequest, Image, ImageList, ImageName } from '../../contract/assets/image.ts';
import { DurationSeconds } from '../../contract/values/duration.ts';
import { ExtensionId } from '../../contract/values/ids.ts';
import { buildImage, importImage } from '../../control/assets/import-image.ts';
import { deleteImage, getImage, listImages } from '../../control/assets/manage-images.ts';
import { Upload } from '../exchange/read-body.ts';
import { flag } from '../parse/query-schemas.ts';
import { presentImage } from '../present/assets.ts';
import { json, jsonBody, nothing, route } from '../route/route.ts';

/** An id, a name, or `name@sha256:…`. */
const ImagePathParams = z.strictObject({
  image: z
    .string()
    .max(140)
    .regex(
      /^[a-z0-9][a-z0-9._-]*(?:@?sha256:[0-9a-f]{64}|:[0-9a-f]{64})?$/,
      'Name an image by its id, its name, or name@digest.',
    ),
});
const tag = 'images';

export const imageRoutes = [
  route({
    method: 'POST',
    url: '/v1/images',
    operationId: 'importImage',
    summary: 'Keep an image: the tar of a root file system, an OCI layout, or what `docker save` writes.',
    tag,
    scope: 'sandboxes',
    query: z.strictObject({
      name: ImageName,
      extension: ExtensionId.default('ext.local'),
      shared: flag().default(false).describe('For all workspaces; the administrator of the server may.'),
      retain: DurationSeconds.optional().describe('Deleted by us after this time.'),
    }),
    body: {
      kind: 'stream',
      mediaTypes: ['application/x-tar', 'application/gzip', 'application/zstd', 'application/octet-stream'],
      description: 'A tar archive, plain or compressed by gzip or zstd.',
    } as const,
    responses: { 201: json(Image, 'The image, by its digest.') },
    async handler({ services, exchange, caller, query }) {
      const { control, limits } = services;
      const upload = new Upload(exchange, limits.uploadBytes, limits.idleUploadMs);
      const record = await upload.into((body) =>
        importImage(control, caller, { request: query, body, signal: exchange.signal }),
      );
      return { status: 201, body: presentImage(record) };
    },
  }),
  route({
    method: 'POST',
    url: '/v1/images/build',
    operationId: 'buildImage',
    summary: 'Make a Debian root file system on the server, from its package sources.',
    tag,
    scope: 'server',
    body: jsonBody(BuildImageRequest),
    responses: { 201: json(Image, 'The image, by its digest.') },
    async handler({ services, exchange, caller, body }) {
      const record = await buildImage(services.control, caller, { request: body, signal: exchange.signal });
      return { status: 201, body: presentImage(record) };
    },
  }),
  route({
    method: 'GET',
    url: '/v1/images',
    operationId: 'listImages',
    summary: 'List the images of the workspace and the shared ones, oldest first.',
    tag,
    scope: 'read',
    responses: { 200: json(ImageList, 'The images.') },
    async handler({ services, caller }) {
      return { status: 200, body: { items: (await listImages(services.control, caller)).map(presentImage) } };
    },
  }),
  route({
    method: 'GET',
    url: '/v1/images/{image}',
    operationId: 'getImage',
    summary: 'Show an image. A name alone means the newest of that name.',
    tag,
    scope: 'read',
    params: ImagePathParams,
    responses: { 200: json(Image, 'The image.') },
    async handler({ services, caller, params }) {
      return {
        status: 200,
        body: presentImage(await getImage(services.control, caller, { ref: params.image })),
      };
    },
  }),
  route({
    method: 'DELETE',
    url: '/v1/images/{image}',
    operationId: 'deleteImage',
    summary: 'Delete an image. What was made from it goes on.',
    tag,
    scope: 'sandboxes',
    params: ImagePathParams,
    responses: { 204: nothing('It is gone.') },
    async handler({ services, caller, params }) {
      await deleteImage(services.control, caller, { ref: params.image });
      return { status: 204, body: undefined };
    },
  }),
];
