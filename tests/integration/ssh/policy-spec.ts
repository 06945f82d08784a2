/** What a sandbox under policy on a host of a test is asked for. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ExtensionContext, ProvisionSpec } from '../../../src/core/ports/extension.ts';
import { NO_INPUTS } from '../../../src/core/ports/inputs.ts';
import { silentLog } from '../../../src/core/ports/log.ts';
import { CAPABILITIES } from '../../../src/extensions/ssh/config.ts';
import { defaultRecipe } from '../../../src/testing/conformance/default-recipe.ts';
import type { SshServer } from '../../../src/testing/ssh-server.ts';

export function contextOf(server: SshServer): ExtensionContext {
  const clock = { now: () => Date.now(), sleep: async (ms: number) => void (await sleep(ms)) };
  const host = { id: 'h1', labels: {}, ssh: server.access() };
  return { signal: new AbortController().signal, clock, log: silentLog, host };
}

export function policySpec(attemptId: string): ProvisionSpec {
  return {
    stamp: { sandboxUid: 'u', attemptId, owner: 'tests' },
    sandboxId: 'u',
    workspaceId: 'w',
    generation: 1,
    recipe: { ...defaultRecipe(CAPABILITIES), isolation: 'policy' },
    labels: {},
    secrets: [],
    inputs: NO_INPUTS,
    endsAt: Date.now() + 600_000,
  };
}
