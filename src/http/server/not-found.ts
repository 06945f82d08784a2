import type { IncomingMessage } from 'node:http';
import { SandboxerError } from '../../contract/errors/errors.ts';
import { ROUTE_TABLE } from './route-table.ts';

interface KnownPath {
  readonly pattern: RegExp;
  readonly methods: string[];
}

function knownPaths(): readonly KnownPath[] {
  const paths = new Map<string, KnownPath>();
  for (const { url, method } of ROUTE_TABLE) {
    const pattern = new RegExp(`^${url.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]+')}$`);
    const known = paths.get(url) ?? { pattern, methods: [] };
    known.methods.push(...(method === 'GET' ? [method, 'HEAD'] : [method]));
    paths.set(url, known);
  }
  return [...paths.values()];
}

const PATHS = knownPaths();

function methodsOf(request: IncomingMessage): string[] {
  const path = (request.url ?? '').split('?', 1)[0] ?? '';
  const methods = PATHS.filter(({ pattern }) => pattern.test(path)).flatMap((known) => known.methods);
  return [...new Set(methods)];
}

/** Returns the answer to OPTIONS: the methods of a path; `null` where there is none. Nothing is allowed to other origins. */
export function optionsOf(request: IncomingMessage): { allow: string } | null {
  const methods = request.method === 'OPTIONS' ? methodsOf(request) : [];
  return methods.length === 0 ? null : { allow: [...methods, 'OPTIONS'].join(', ') };
}

/** A path that exists under other methods says which. */
export function unknownRoute(request: IncomingMessage): {
  error: SandboxerError;
  headers: Record<string, string>;
} {
  const methods = methodsOf(request);
  if (methods.length > 0 && !methods.includes(request.method ?? '')) {
    const allow = methods.join(', ');
    const error = new SandboxerError('SBX_METHOD_NOT_ALLOWED', `This path allows ${allow}.`);
    return { error, headers: { allow } };
  }
  const error = new SandboxerError('SBX_NOT_FOUND', 'There is nothing at this path.', {
    remedy: 'See /v1/openapi.json for the paths that exist.',
  });
  return { error, headers: {} };
}
