import type { Exchange } from './exchange.ts';
import type { HttpServices } from './http-services.ts';

export function createMetrics(_services: HttpServices) {
  return { observe(_exchange: Exchange, _route: string): void {} };
}
