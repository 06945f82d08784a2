import type { ExpectedUse } from '../../contract/routing/route.ts';
import { shortDuration } from './relative-time.ts';

/** Formats `12m (learned from 40 sandboxes), processors 25% busy (assumed)`. */
export function useText(use: ExpectedUse): string {
  const learned = `learned from ${use.samples} sandboxes`;
  const time = { request: 'as you said', learned, ttl: 'its whole ttl' }[use.seconds_from];
  const measured = `learned from ${use.cpu_samples ?? 0} sandboxes`;
  const busy = { request: 'as you said', learned: measured, assumed: 'assumed' }[use.cpu_from];
  const percent = Math.round(use.cpu_utilisation * 100);
  return `${shortDuration(use.seconds)} (${time}), processors ${percent}% busy (${busy})`;
}
