import { setTimeout as sleep } from 'node:timers/promises';

export { bytesFrom, bytesOf } from '../../../src/testing/conformance/bytes.ts';
export {
  finish,
  runProgram,
  runShell,
  shellArgv,
  spawnSpec,
} from '../../../src/testing/conformance/run-program.ts';

export async function eventually(
  check: () => boolean | Promise<boolean>,
  withinMs = 30_000,
): Promise<boolean> {
  for (const until = Date.now() + withinMs; ; ) {
    if (await check()) return true;
    if (Date.now() >= until) return false;
    await sleep(20);
  }
}
