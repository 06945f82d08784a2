import type { RouteDefinition } from '../route/route.ts';
import { auditRoutes } from '../v1/account/audit.ts';
import { creditControlRoutes } from '../v1/account/credit-control.ts';
import { creditRoutes } from '../v1/account/credits.ts';
import { keyRoutes } from '../v1/account/keys.ts';
import { providerKeyRoutes } from '../v1/account/provider-keys.ts';
import { sinkRoutes } from '../v1/account/sinks.ts';
import { tenantRoutes } from '../v1/account/tenants.ts';
import { webhookRoutes } from '../v1/account/webhooks.ts';
import { extensionRoutes } from '../v1/catalogue/extensions.ts';
import { hostRoutes } from '../v1/catalogue/hosts.ts';
import { profileRoutes } from '../v1/catalogue/profiles.ts';
import { quoteRoutes } from '../v1/catalogue/quotes.ts';
import { registryRoutes } from '../v1/catalogue/registry.ts';
import { routingRoutes } from '../v1/catalogue/routes.ts';
import { stackRoutes } from '../v1/catalogue/stacks.ts';
import { staleRoutes } from '../v1/catalogue/stale.ts';
import { eventRoutes } from '../v1/events.ts';
import { execRoutes } from '../v1/exec.ts';
import { fileRoutes } from '../v1/files.ts';
import { imageRoutes } from '../v1/images.ts';
import { metaRoutes } from '../v1/meta.ts';
import { portRoutes } from '../v1/ports.ts';
import { processRoutes } from '../v1/processes.ts';
import { sandboxRoutes } from '../v1/sandboxes.ts';
import { serviceLogRoutes } from '../v1/service-log.ts';
import { snapshotRoutes } from '../v1/snapshots.ts';
import { uploadRoutes } from '../v1/uploads.ts';
import { volumeRoutes } from '../v1/volumes.ts';

/** All routes that are served. The OpenAPI document is made from the same table. */
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
