import type { z } from 'zod';
import type { KeyScope } from '../../contract/tenancy/tenancy.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import type { Exchange } from '../exchange/exchange.ts';
import type { HttpLimits, ProfileUpload } from '../services/http-options.ts';
import type { HttpServices } from '../services/http-services.ts';
import type { Connect } from './web-socket-route.ts';

/** The answer went out as a stream; there is nothing left to send. */
export const STREAMED = Symbol('streamed');

export interface ResponseSpec {
  readonly description: string;
  /** The schemas by media type; `null` is bytes of any kind. */
  readonly content: Readonly<Record<string, z.ZodType | null>>;
  readonly headers?: readonly string[];
}
export interface JsonResponse<S extends z.ZodType> extends ResponseSpec {
  readonly schema: S;
}

type AnswerBody<R> = R extends JsonResponse<infer S> ? z.output<S> : undefined;

/** The possible answers of a handler: a declared status with the body that is declared for it. */
export type Answer<R extends Responses> =
  | {
      [S in keyof R]: {
        readonly status: S;
        readonly body: AnswerBody<R[S]>;
        readonly headers?: Readonly<Record<string, string>>;
      };
    }[keyof R]
  | typeof STREAMED;

export type Responses = Readonly<Record<number, ResponseSpec>>;

/** How the body is read: whole and parsed before the handler runs, or handed to it as a stream. */
export type BodySpec =
  | {
      readonly kind: 'json';
      readonly schema: z.ZodType;
      readonly limit: keyof HttpLimits;
      /** The limit on its values: names and items, at every level. */
      readonly values: keyof HttpLimits;
      /** Programs may be fed NUL characters; databases may not. */
      readonly allowsNul: boolean;
    }
  /** A profile as JSON or YAML; its content is checked by the catalogue, which names line and field. */
  | { readonly kind: 'document'; readonly limit: keyof HttpLimits; readonly values: keyof HttpLimits }
  | { readonly kind: 'stream'; readonly mediaTypes: readonly string[]; readonly description: string };

export interface RouteContext<P, Q, B> {
  readonly services: HttpServices;
  readonly exchange: Exchange;
  readonly caller: Caller;
  readonly params: P;
  readonly query: Q;
  readonly body: B;
}

/** An entry of the route table: the server and the OpenAPI document use the same data. */
export interface RouteDefinition {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** The path in the spelling of OpenAPI: `/v1/sandboxes/{id}`. */
  readonly url: string;
  readonly operationId: string;
  readonly summary: string;
  readonly tag: string;
  /** `public` needs no key, `any` a key with whatever scopes. */
  readonly scope: KeyScope | 'public' | 'any';
  readonly params?: z.ZodObject;
  readonly query?: z.ZodObject;
  readonly headers?: readonly RequestHeader[];
  readonly body?: BodySpec;
  readonly responses: Responses;
  /** The handler of a route that is served as a WebSocket. */
  readonly connect?: Connect<never>;
  /** The first message of the WebSocket is a request, and bounded as one. */
  readonly beginsWithRequest?: boolean;
  handler(context: RouteContext<never, never, never>): Promise<unknown>;
}

export type RequestHeader = 'Idempotency-Key' | 'Last-Event-ID' | 'Range';

type OutputOf<S> = S extends z.ZodType ? z.output<S> : undefined;
type BodyOf<B> = B extends { kind: 'json'; schema: infer S extends z.ZodType }
  ? z.output<S>
  : B extends { kind: 'document' }
    ? ProfileUpload
    : undefined;

/** Checks that the handler fits what the definition says. */
export function route<
  const R extends Responses,
  P extends z.ZodObject | undefined = undefined,
  Q extends z.ZodObject | undefined = undefined,
  B extends BodySpec | undefined = undefined,
>(
  definition: Omit<RouteDefinition, 'handler' | 'params' | 'query' | 'body' | 'responses'> & {
    readonly params?: P;
    readonly query?: Q;
    readonly body?: B;
    readonly responses: R;
    handler(context: RouteContext<OutputOf<P>, OutputOf<Q>, BodyOf<B>>): Promise<Answer<R>>;
  },
): RouteDefinition {
  return definition as unknown as RouteDefinition;
}

export function json<S extends z.ZodType>(
  schema: S,
  description: string,
  headers?: readonly string[],
): JsonResponse<S> {
  return {
    description,
    schema,
    content: { 'application/json': schema },
    ...(headers === undefined ? {} : { headers }),
  };
}

export function jsonBody<S extends z.ZodType>(schema: S, size: 'usual' | 'large' = 'usual') {
  const limit = size === 'large' ? 'largeJsonBytes' : 'jsonBytes';
  const values = size === 'large' ? 'largeJsonValues' : 'jsonValues';
  return { kind: 'json', schema, limit, values, allowsNul: false } as const;
}

/** An answer without a body. */
export function nothing(description: string): ResponseSpec {
  return { description, content: {} };
}
