import type { RouteDefinition } from './route.ts';
import { sandboxRoutes } from './v1/sandboxes.ts';

/** Everything that is served. */
export const ROUTE_TABLE: readonly RouteDefinition[] = [...sandboxRoutes];
