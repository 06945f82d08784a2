import { setTimeout as sleep } from 'node:timers/promises';

/** Looks again and again; a minute is met by a hang alone. `tell` says how it is then. */
export async function until(
  check: () => boolean | Promise<boolean>,
  tell: () => unknown = () => '',
): Promise<void> {
  for (let tries = 0; tries < 6_000; tries++) {
    if (await check()) return;
    await sleep(10);
  }
  throw new Error(`it did not come to that ${JSON.stringify(tell())}`);
}
