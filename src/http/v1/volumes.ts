import { z } from 'zod';
import { CreateVolumeRequest, Volume, VolumeList } from '../../contract/assets/volume.ts';
import { createVolume, deleteVolume, getVolume, listVolumes } from '../../control/assets/manage-volumes.ts';
import { presentVolume } from '../present/assets.ts';
import { json, jsonBody, nothing, route } from '../route/route.ts';

/** An id or a name. */
const VolumePathParams = z.strictObject({
  volume: z
    .string()
    .max(64)
    .regex(/^[a-z0-9][a-z0-9._-]*$/, 'Name a volume by its id or its name.'),
});
const tag = 'volumes';

export const volumeRoutes = [
  route({
    method: 'POST',
    url: '/v1/volumes',
    operationId: 'createVolume',
    summary: 'Make a directory that outlives sandboxes.',
    tag,
    scope: 'sandboxes',
    body: jsonBody(CreateVolumeRequest),
    responses: { 201: json(Volume, 'The volume, empty.') },
    async handler({ services, exchange, caller, body }) {
      const view = await createVolume(services.control, caller, { request: body, signal: exchange.signal });
      return { status: 201, body: presentVolume(view) };
    },
  }),
  route({
    method: 'GET',
    url: '/v1/volumes',
    operationId: 'listVolumes',
    summary: 'List the volumes of the workspace, oldest first.',
    tag,
    scope: 'read',
    responses: { 200: json(VolumeList, 'The volumes.') },
    async handler({ services, caller }) {
      return {
        status: 200,
        body: { items: (await listVolumes(services.control, caller)).map(presentVolume) },
      };
    },
  }),
  route({
    method: 'GET',
    url: '/v1/volumes/{volume}',
    operationId: 'getVolume',
    summary: 'Show a volume and which sandboxes have it.',
    tag,
    scope: 'read',
    params: VolumePathParams,
    responses: { 200: json(Volume, 'The volume.') },
    async handler({ services, caller, params }) {
      return {
        status: 200,
        body: presentVolume(await getVolume(services.control, caller, { ref: params.volume })),
      };
    },
  }),
  route({
    method: 'DELETE',
    url: '/v1/volumes/{volume}',
    operationId: 'deleteVolume',
    summary: 'Delete a volume with everything in it. Refused while a sandbox has it.',
    tag,
    scope: 'sandboxes',
    params: VolumePathParams,
    responses: { 204: nothing('It is gone.') },
    async handler({ services, caller, params }) {
      await deleteVolume(services.control, caller, { ref: params.volume });
      return { status: 204, body: undefined };
    },
  }),
];
