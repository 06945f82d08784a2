import { z } from 'zod';
import { Sandbox } from '../../contract/sandboxes/sandbox.ts';
import type { Establishment, WaitOptions } from '../../control/sandboxes/establish.ts';
import { isSettledState } from '../../core/lifecycle/lifecycle.ts';
import type { SandboxRecord } from '../../core/lifecycle/sandbox.ts';
import type { Exchange } from '../exchange/exchange.ts';
import { timeoutMs } from '../parse/query-schemas.ts';
import { json } from '../route/route.ts';
import type { HttpServices } from '../services/http-services.ts';

/** Whether to wait for the outcome, and for how long. */
export const WaitReady = z.strictObject({
  wait: z.enum(['ready', 'none']).default('ready'),
  timeout: timeoutMs.optional(),
});

export function waitOptions(
  services: HttpServices,
  exchange: Exchange,
  query: { readonly wait: string; readonly timeout?: number | undefined },
): WaitOptions {
  return {
    wait: query.wait !== 'none',
    ...(query.timeout === undefined ? {} : { timeoutMs: Math.min(query.timeout, services.limits.waitMs) }),
    signal: exchange.signal,
  };
}

/** Whether the state is final, whatever it is; `destroying` may be the way to the next generation. */
export function stands({ state }: SandboxRecord): boolean {
  return isSettledState(state) && state !== 'destroying';
}

export const ESTABLISHED = {
  200: json(Sandbox, 'A living sandbox was found, or the request is a repetition.', ['Location']),
  201: json(Sandbox, 'The sandbox is ready.', ['Location']),
  202: json(Sandbox, 'The sandbox is on its way: wait for it, or follow `links.events`.', ['Location']),
} as const;

/** 201 for a new one, 200 for one that was there, 202 while it is on its way. */
export function established(services: HttpServices, { sandbox, reused }: Establishment) {
  const done = reused ? 200 : 201;
  return {
    status: stands(sandbox) ? done : 202,
    body: services.present.sandbox(sandbox, { reused }),
    headers: { location: services.present.sandboxUrl(sandbox.id) },
  } as const;
}
