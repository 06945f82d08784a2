import { z } from 'zod';
import { IsolationReport } from '../../contract/extensions/isolation.ts';
import {
  CreateSandboxRequest,
  ExtendedSandbox,
  ExtendRequest,
  ForkRequest,
  Sandbox,
  SandboxPage,
} from '../../contract/sandboxes/sandbox.ts';
import { ExtensionId, ProfileRef } from '../../contract/values/ids.ts';
import { SandboxState } from '../../contract/values/state.ts';
import { waitForSandbox } from '../../control/lifecycle/wait-for-sandbox.ts';
import { createSandbox } from '../../control/sandboxes/create-sandbox.ts';
import { forkSandbox } from '../../control/sandboxes/derive-sandbox.ts';
import { destroySandbox } from '../../control/sandboxes/destroy-sandbox.ts';
import { extendSandbox } from '../../control/sandboxes/extend-sandbox.ts';
import { getSandbox } from '../../control/sandboxes/get-sandbox.ts';
import { listSandboxes } from '../../control/sandboxes/list-sandboxes.ts';
import { pauseSandbox, resumeSandbox } from '../../control/sandboxes/pause-sandbox.ts';
import { recreateSandbox } from '../../control/sandboxes/recreate-sandbox.ts';
import { inspectIsolation } from '../../control/use/inspect-isolation.ts';
import { isSettledState } from '../../core/lifecycle/lifecycle.ts';
import type { SandboxRecord } from '../../core/lifecycle/sandbox.ts';
import { idempotencyKeyOf } from '../parse/idempotency-key.ts';
import { cursor, listOf, repeated, text, timeoutMs, wholeNumber } from '../parse/query-schemas.ts';
import { SandboxPathParams } from '../parse/sandbox-id.ts';
import { json, jsonBody, route } from '../route/route.ts';
import { ESTABLISHED, established, stands, WaitReady, waitOptions } from './establishment.ts';

const List = z.strictObject({
  state: listOf(SandboxState, 16).optional(),
  profile: ProfileRef.optional(),
  extension: ExtensionId.optional(),
  label: repeated(
    z
      .string()
      .max(330)
      .regex(/^[^=]+=/, 'Write a label as "key=value".'),
    64,
  ).optional(),
  harness: text(200).optional(),
  external_id: text(200).optional().describe('A session, run or job id.'),
  limit: wholeNumber(1, 500).default(100),
  cursor: cursor.optional(),
});

const WAITS_FOR: Readonly<Record<'ready' | 'destroyed' | 'settled', (row: SandboxRecord) => boolean>> = {
  ready: (row) => isSettledState(row.state) && !row.recreating,
  destroyed: (row) => row.state === 'destroyed',
  settled: (row) => stands(row) && row.state !== 'expired',
};

function labelsOf(pairs: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    pairs.map((pair) => {
      const equals = pair.indexOf('=');
      return [pair.slice(0, equals), pair.slice(equals + 1)];
    }),
  );
}

const tag = 'sandboxes';

export const sandboxRoutes = [
  route({
    method: 'POST',
    url: '/v1/sandboxes',
    operationId: 'createSandbox',
    summary: 'Establish a sandbox from a profile.',
    tag,
    scope: 'sandboxes',
    query: WaitReady,
    headers: ['Idempotency-Key'],
    body: jsonBody(CreateSandboxRequest, 'large'),
    responses: ESTABLISHED,
    async handler({ services, exchange, caller, query, body }) {
      const options = { ...waitOptions(services, exchange, query), ...idempotencyKeyOf(exchange) };
      return established(
        services,
        await createSandbox(services.control, caller, { request: body, ...options }),
      );
    },
  }),
  route({
    method: 'GET',
    url: '/v1/sandboxes',
    operationId: 'listSandboxes',
    summary: 'List sandboxes, newest first.',
    tag,
    scope: 'read',
    query: List,
    responses: { 200: json(SandboxPage, 'A page of sandboxes.') },
    async handler({ services, caller, query }) {
      const page = await listSandboxes(services.control, caller, {
        ...(query.state && { states: query.state }),
        ...(query.profile && { profileId: fullProfileId(query.profile) }),
        ...(query.extension && { extensionId: query.extension }),
        ...(query.label && { labels: labelsOf(query.label) }),
        ...(query.harness && { harness: query.harness }),
        ...(query.external_id && { externalId: query.external_id }),
        cursor: query.cursor ?? null,
        limit: query.limit,
      });
      const items = page.items.map((record) => services.present.sandbox(record));
      return { status: 200, body: { items, next_cursor: page.nextCursor } };
    },
  }),
  route({
    method: 'GET',
    url: '/v1/sandboxes/{id}',
    operationId: 'getSandbox',
    summary: 'Show one sandbox.',
    tag,
    scope: 'read',
    params: SandboxPathParams,
    responses: { 200: json(Sandbox, 'The sandbox as it is now.') },
    async handler({ services, caller, params }) {
      const { sandbox, teardown } = await getSandbox(services.control, caller, { id: params.id });
      return { status: 200, body: services.present.sandbox(sandbox, { teardown }) };
    },
  }),
  route({
    method: 'DELETE',
    url: '/v1/sandboxes/{id}',
    operationId: 'destroySandbox',
    summary: 'Destroy a sandbox. Repeating it is harmless.',
    tag,
    scope: 'sandboxes',
    params: SandboxPathParams,
    query: z.strictObject({
      wait: z.enum(['destroyed', 'none']).default('destroyed'),
      timeout: timeoutMs.optional(),
    }),
    responses: {
      200: json(Sandbox, 'It is gone, verified; or it is shared and was let go of.'),
      202: json(Sandbox, 'It is being destroyed.'),
    },
    async handler({ services, exchange, caller, params, query }) {
      const options = waitOptions(services, exchange, query);
      const { sandbox, released } = await destroySandbox(services.control, caller, {
        id: params.id,
        ...options,
      });
      const status = released || sandbox.state === 'destroyed' ? 200 : 202;
      return { status, body: services.present.sandbox(sandbox) };
    },
  }),
  route({
    method: 'GET',
    url: '/v1/sandboxes/{id}/isolation',
    operationId: 'inspectIsolation',
    summary: 'Isolation in force between a living sandbox and its host, read from the kernel.',
    tag,
    scope: 'read',
    params: SandboxPathParams,
    responses: { 200: json(IsolationReport, 'What is in force now, and what is not.') },
    async handler({ services, exchange, caller, params }) {
      const body = await inspectIsolation(services.control, caller, {
        id: params.id,
        signal: exchange.signal,
      });
      return { status: 200, body };
    },
  }),
  route({
    method: 'GET',
    url: '/v1/sandboxes/{id}/wait',
    operationId: 'waitForSandbox',
    summary: 'Wait until a sandbox gets somewhere, without polling.',
    tag,
    scope: 'read',
    params: SandboxPathParams,
    query: z.strictObject({
      for: z.enum(['ready', 'destroyed', 'settled']).default('ready'),
      timeout: timeoutMs.optional(),
    }),
    responses: {
      200: json(Sandbox, 'It got there, or to an end that rules it out: see `state`.'),
      202: json(Sandbox, 'The time is up; it is not there yet.'),
    },
    async handler({ services, exchange, caller, params, query }) {
      const { control, limits } = services;
      const { sandbox } = await getSandbox(control, caller, { id: params.id });
      const done = WAITS_FOR[query.for];
      const longest = Math.min(query.timeout ?? control.settings.waitMs, limits.waitMs);
      const last = done(sandbox)
        ? sandbox
        : ((await waitForSandbox(control, sandbox.uid, done, {
            timeoutMs: longest,
            signal: exchange.signal,
          })) ?? sandbox);
      return { status: done(last) ? 200 : 202, body: services.present.sandbox(last) };
    },
  }),
  route({
    method: 'POST',
    url: '/v1/sandboxes/{id}/extend',
    operationId: 'extendSandbox',
    summary:
      'Move the deadline to now + ttl, earlier or later, at most to the end of the profile’s longest life.',
    tag,
    scope: 'sandboxes',
    params: SandboxPathParams,
    body: jsonBody(ExtendRequest),
    responses: {
      200: json(ExtendedSandbox, '`expires_at` is the resulting deadline, `extended` how it came about.'),
    },
    async handler({ services, caller, params, body }) {
      const { control, present } = services;
      const extended = await extendSandbox(control, caller, { id: params.id, ttlSeconds: body.ttl });
      return { status: 200, body: present.extended(extended) };
    },
  }),
  ...(['pause', 'resume'] as const).map((verb) =>
    route({
      method: 'POST',
      url: `/v1/sandboxes/{id}/${verb}`,
      operationId: `${verb}Sandbox`,
      summary: verb === 'pause' ? 'Pause a sandbox.' : 'Resume a paused sandbox.',
      tag,
      scope: 'sandboxes',
      params: SandboxPathParams,
      responses: { 200: json(Sandbox, `The sandbox after the ${verb}.`) },
      async handler({ services, caller, params }) {
        const act = verb === 'pause' ? pauseSandbox : resumeSandbox;
        const sandbox = await act(services.control, caller, { id: params.id });
        return { status: 200, body: services.present.sandbox(sandbox) };
      },
    }),
  ),
  route({
    method: 'POST',
    url: '/v1/sandboxes/{id}/recreate',
    operationId: 'recreateSandbox',
    summary: 'Destroy it and build the same recipe again under the same id.',
    tag,
    scope: 'sandboxes',
    params: SandboxPathParams,
    query: WaitReady,
    responses: {
      200: json(Sandbox, 'The next generation is ready.', ['Location']),
      202: json(Sandbox, 'The next generation is on its way.', ['Location']),
    },
    async handler({ services, exchange, caller, params, query }) {
      const { control } = services;
      const { sandbox } = await recreateSandbox(control, caller, {
        id: params.id,
        ...waitOptions(services, exchange, query),
      });
      return {
        status: stands(sandbox) ? 200 : 202,
        body: services.present.sandbox(sandbox),
        headers: { location: services.present.sandboxUrl(sandbox.id) },
      };
    },
  }),
  route({
    method: 'POST',
    url: '/v1/sandboxes/{id}/fork',
    operationId: 'forkSandbox',
    summary: 'Make a new sandbox with the content that this one has now.',
    tag,
    scope: 'sandboxes',
    params: SandboxPathParams,
    query: WaitReady,
    headers: ['Idempotency-Key'],
    body: jsonBody(ForkRequest),
    responses: ESTABLISHED,
    async handler({ services, exchange, caller, params, query, body }) {
      const options = { ...waitOptions(services, exchange, query), ...idempotencyKeyOf(exchange) };
      return established(
        services,
        await forkSandbox(services.control, caller, { id: params.id, request: body, ...options }),
      );
    },
  }),
];

function fullProfileId(ref: string): string {
  const [name = ''] = ref.split('@');
  return name.startsWith('profile.') ? name : `profile.${name}`;
}
