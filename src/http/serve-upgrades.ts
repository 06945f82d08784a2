import type { Server } from 'node:http';
import type { HttpServices } from './http-services.ts';

export function serveUpgrades(_server: Server, _services: HttpServices) {
  return { stop(): void {} };
}
