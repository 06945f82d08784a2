import type { Host } from '../../contract/host.ts';
import { waitText } from './relative-time.ts';

type Canary = Host['health']['canaries'][number];

export const millis = (value: unknown): string => (typeof value === 'number' ? waitText(value) : '-');

export function canaryText(canary: Canary): string {
  if (canary.failures > 0) return `failed ${canary.failures} in a row: ${canary.detail}`;
  return `ready ${millis(canary.ready_ms)}, exec ${millis(canary.exec_ms)}, gone ${millis(canary.destroyed_ms)}`;
}
