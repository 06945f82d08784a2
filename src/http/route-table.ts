import type { RouteDefinition } from './route.ts';
import { auditRoutes } from './v1/audit.ts';
import { creditControlRoutes } from './v1/credit-control.ts';
import { creditRoutes } from './v1/credits.ts';
import { eventRoutes } from './v1/events.ts';
import { execRoutes } from './v1/exec.ts';
import { extensionRoutes } from './v1/extensions.ts';
import { fileRoutes } from './v1/files.ts';
import { hostRoutes } from './v1/hosts.ts';
import { imageRoutes } from './v1/images.ts';
import { keyRoutes } from './v1/keys.ts';
import { metaRoutes } from './v1/meta.ts';
import { portRoutes } from './v1/ports.ts';
import { processRoutes } from './v1/processes.ts';
import { profileRoutes } from './v1/profiles.ts';
import { providerKeyRoutes } from './v1/provider-keys.ts';
import { quoteRoutes } from './v1/quotes.ts';
import { registryRoutes } from './v1/registry.ts';
import { routingRoutes } from './v1/routes.ts';
import { sandboxRoutes } from './v1/sandboxes.ts';
import { serviceLogRoutes } from './v1/service-log.ts';
import { sinkRoutes } from './v1/sinks.ts';
import { snapshotRoutes } from './v1/snapshots.ts';
import { stackRoutes } from './v1/stacks.ts';
import { staleRoutes } from './v1/stale.ts';
import { tenantRoutes } from './v1/tenants.ts';
import { uploadRoutes } from './v1/uploads.ts';
import { volumeRoutes } from './v1/volumes.ts';
import { webhookRoutes } from './v1/webhooks.ts';

/** Everything that is served. The OpenAPI document is made from the same table. */
export const ROUTE_TABLE: readonly RouteDefinition[] = metaRoutes([
  ...sandboxRoutes,
  ...execRoutes,
  ...processRoutes,
  ...serviceLogRoutes,
  ...fileRoutes,
  ...portRoutes,
  ...snapshotRoutes,
  ...uploadRoutes,
  ...imageRoutes,
  ...volumeRoutes,
  ...profileRoutes,
  ...extensionRoutes,
  ...hostRoutes,
  ...staleRoutes,
  ...routingRoutes,
  ...quoteRoutes,
  ...stackRoutes,
  ...registryRoutes,
  ...creditRoutes,
  ...creditControlRoutes,
  ...eventRoutes,
  ...keyRoutes,
  ...providerKeyRoutes,
  ...webhookRoutes,
  ...sinkRoutes,
  ...tenantRoutes,
  ...auditRoutes,
]);
