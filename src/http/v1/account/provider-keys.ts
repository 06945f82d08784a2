import { z } from 'zod';
import { ProviderKey, ResealReport, SetProviderKeyRequest } from '../../../contract/tenancy/provider-key.ts';
import { ProviderKeyId } from '../../../contract/values/ids.ts';
import {
  deleteProviderKey,
  disableProviderKey,
  listProviderKeys,
  resealSecrets,
  setProviderKey,
  testProviderKey,
} from '../../../control/tenancy/manage-provider-keys.ts';
import { presentProviderKey } from '../../present/provider-keys.ts';
import { json, jsonBody, nothing, route } from '../../route/route.ts';

const ProviderKeyList = z.strictObject({ items: z.array(ProviderKey) }).meta({ id: 'ProviderKeyList' });
const params = z.strictObject({ provider_key_id: ProviderKeyId });
const tag = 'provider keys';
const scope = 'keys';

export const providerKeyRoutes = [
  route({
    method: 'GET',
    url: '/v1/provider-keys',
    operationId: 'listProviderKeys',
    summary:
      'The keys of vendors that the workspace has, without their secrets. The platform’s are its administrators’.',
    tag,
    scope,
    responses: { 200: json(ProviderKeyList, 'The keys.') },
    async handler({ services, caller }) {
      const keys = await listProviderKeys(services.control, caller);
      return { status: 200, body: { items: keys.map(presentProviderKey) } };
    },
  }),
  route({
    method: 'PUT',
    url: '/v1/provider-keys',
    operationId: 'setProviderKey',
    summary: 'Keep a key of a vendor: tried there first, sealed, never shown again. Another one replaces it.',
    tag,
    scope,
    body: jsonBody(SetProviderKeyRequest),
    responses: { 200: json(ProviderKey, 'The key, without its secret.') },
    async handler({ services, caller, body, exchange }) {
      const key = await setProviderKey(services.control, caller, { request: body, signal: exchange.signal });
      return { status: 200, body: presentProviderKey(key) };
    },
  }),
  route({
    method: 'POST',
    url: '/v1/provider-keys/{provider_key_id}/test',
    operationId: 'testProviderKey',
    summary: 'Ask the vendor whether it takes the key: one that was refused is used again when it does.',
    tag,
    scope,
    params,
    responses: { 200: json(ProviderKey, 'The key as it is now.') },
    async handler({ services, caller, params: { provider_key_id }, exchange }) {
      const key = await testProviderKey(services.control, caller, {
        id: provider_key_id,
        signal: exchange.signal,
      });
      return { status: 200, body: presentProviderKey(key) };
    },
  }),
  route({
    method: 'POST',
    url: '/v1/provider-keys/{provider_key_id}/disable',
    operationId: 'disableProviderKey',
    summary: 'Make nothing new with the key. What runs goes on; setting it again enables it.',
    tag,
    scope,
    params,
    responses: { 200: json(ProviderKey, 'The key as it is now.') },
    async handler({ services, caller, params: { provider_key_id } }) {
      const key = await disableProviderKey(services.control, caller, { id: provider_key_id });
      return { status: 200, body: presentProviderKey(key) };
    },
  }),
  route({
    method: 'DELETE',
    url: '/v1/provider-keys/{provider_key_id}',
    operationId: 'deleteProviderKey',
    summary: 'Forget a key that nothing was made with, or nothing is left of.',
    tag,
    scope,
    params,
    responses: { 204: nothing('It is gone.') },
    async handler({ services, caller, params: { provider_key_id } }) {
      await deleteProviderKey(services.control, caller, { id: provider_key_id });
      return { status: 204, body: undefined };
    },
  }),
  route({
    method: 'POST',
    url: '/v1/provider-keys/reseal',
    operationId: 'resealSecrets',
    summary: 'Put every stored secret under the current master key, after it was changed.',
    tag,
    scope: 'server',
    responses: { 200: json(ResealReport, 'How many were moved.') },
    async handler({ services, caller }) {
      return { status: 200, body: await resealSecrets(services.control, caller) };
    },
  }),
];
