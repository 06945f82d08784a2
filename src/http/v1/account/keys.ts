import { z } from 'zod';
import {
  ApiKey,
  CreatedKey,
  CreateKeyRequest,
  RotateKeyRequest,
  WhoAmI,
} from '../../../contract/tenancy/tenancy.ts';
import { KeyId } from '../../../contract/values/ids.ts';
import { createKey, listKeys, revokeKey, rotateKey } from '../../../control/tenancy/manage-keys.ts';
import { whoAmI } from '../../../control/tenancy/who-am-i.ts';
import { flag } from '../../parse/query-schemas.ts';
import { presentCaller } from '../../present/webhooks.ts';
import { json, jsonBody, route } from '../../route/route.ts';

const KeyList = z.strictObject({ items: z.array(ApiKey) }).meta({ id: 'KeyList' });
const tag = 'keys';

export const keyRoutes = [
  route({
    method: 'POST',
    url: '/v1/keys',
    operationId: 'createKey',
    summary: 'Make a key. Its secret is in this answer and nowhere else.',
    tag,
    scope: 'keys',
    body: jsonBody(CreateKeyRequest),
    responses: { 201: json(CreatedKey, 'The key with its secret.') },
    async handler({ services, caller, body }) {
      const { key, secret } = await createKey(services.control, caller, body);
      return { status: 201, body: { ...services.present.key(key), secret } };
    },
  }),
  route({
    method: 'GET',
    url: '/v1/keys',
    operationId: 'listKeys',
    summary: 'List the keys.',
    tag,
    scope: 'keys',
    responses: { 200: json(KeyList, 'The keys, without their secrets.') },
    async handler({ services, caller }) {
      const keys = await listKeys(services.control, caller);
      return { status: 200, body: { items: keys.map((key) => services.present.key(key)) } };
    },
  }),
  route({
    method: 'DELETE',
    url: '/v1/keys/{key_id}',
    operationId: 'revokeKey',
    summary: 'Revoke a key and the keys it made, from this moment on: what is open in their name is closed.',
    tag,
    scope: 'keys',
    params: z.strictObject({ key_id: KeyId }),
    query: z.strictObject({
      keep_made: flag().default(false).describe('Leave the keys that it made as they are.'),
    }),
    responses: { 200: json(ApiKey, 'The revoked key.') },
    async handler({ services, caller, params, query }) {
      const key = await revokeKey(services.control, caller, {
        id: params.key_id,
        keepsMade: query.keep_made,
      });
      return { status: 200, body: services.present.key(key) };
    },
  }),
  route({
    method: 'POST',
    url: '/v1/keys/{key_id}/rotate',
    operationId: 'rotateKey',
    summary: 'Make a successor with the same rights; the old key ends now, or after the overlap.',
    tag,
    scope: 'keys',
    params: z.strictObject({ key_id: KeyId }),
    body: jsonBody(RotateKeyRequest),
    responses: { 201: json(CreatedKey, 'The new key with its secret.') },
    async handler({ services, caller, params, body }) {
      const { key, secret } = await rotateKey(services.control, caller, { id: params.key_id, request: body });
      return { status: 201, body: { ...services.present.key(key), secret } };
    },
  }),
  route({
    method: 'GET',
    url: '/v1/whoami',
    operationId: 'whoAmI',
    summary: 'Identity and rights of the caller.',
    tag,
    scope: 'any',
    responses: { 200: json(WhoAmI, 'The caller.') },
    async handler({ services, caller }) {
      return { status: 200, body: presentCaller(caller, await whoAmI(services.control, caller)) };
    },
  }),
];
