import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { SandboxerError } from '../../../src/contract/errors/errors.ts';
import type {
  ExtensionContext,
  PlacementHost,
  ProvisionSpec,
  Ready,
} from '../../../src/core/ports/extension.ts';
import type { InputTrees } from '../../../src/core/ports/inputs.ts';
import { NO_INPUTS } from '../../../src/core/ports/inputs.ts';
import { silentLog } from '../../../src/core/ports/log.ts';
import type { SandboxSession } from '../../../src/core/ports/session.ts';
import type { Recipe } from '../../../src/core/recipe/recipe.ts';
import type { createComposeExtension } from '../../../src/extensions/compose-ssh/create.ts';
import { archiveOf, textEntry } from '../../../src/extensions/compose-ssh/stack/ship-tree.ts';
import { defaultRecipe } from '../../../src/testing/conformance/default-recipe.ts';
import { runShell } from '../../../src/testing/conformance/run-program.ts';

type Compose = ReturnType<typeof createComposeExtension>;

/** A tree as text: what an upload or a git ref would have brought. */
export function repo(files: Readonly<Record<string, string>>): InputTrees {
  return {
    list: [{ name: 'repo', uploadId: 'u', digest: 'sha256:0', origin: { kind: 'upload' } }],
    open: async () => archiveOf(Object.entries(files).map(([path, text]) => textEntry(path, text, 0o755))),
  };
}

export function context(host: PlacementHost, signal = new AbortController().signal): ExtensionContext {
  const clock = { now: () => Date.now(), sleep: async (ms: number) => void (await sleep(ms)) };
  return { signal, clock, log: silentLog, host } as ExtensionContext;
}

export interface SpecParts {
  readonly recipe?: Partial<Recipe>;
  readonly inputs?: InputTrees;
  readonly secrets?: ProvisionSpec['secrets'];
  readonly owner?: string;
}

export function specFor(extension: Compose, parts: SpecParts): ProvisionSpec {
  const sandboxUid = `t${randomBytes(8).toString('hex')}`;
  return {
    stamp: { sandboxUid, attemptId: `${sandboxUid}-g1-a1`, owner: parts.owner ?? 'tests' },
    sandboxId: sandboxUid,
    workspaceId: 'w',
    generation: 1,
    recipe: { ...defaultRecipe(extension.header.capabilities), ...parts.recipe },
    labels: {},
    secrets: parts.secrets ?? [],
    inputs: parts.inputs ?? NO_INPUTS,
    endsAt: Date.now() + 600_000,
  };
}

export interface Made {
  readonly spec: ProvisionSpec;
  readonly handle: Awaited<ReturnType<Compose['provision']>>;
  readonly ready: Ready;
  readonly session: SandboxSession;
}

export async function establish(extension: Compose, host: PlacementHost, parts: SpecParts): Promise<Made> {
  const spec = specFor(extension, parts);
  const handle = await extension.provision(spec, context(host));
  const ready = await extension.waitReady(handle, context(host));
  const session = await extension.connect(handle, context(host));
  return { spec, handle, ready, session };
}

/** What the work ends with, which must be one of our errors. */
export async function errorOf(work: Promise<unknown>): Promise<SandboxerError> {
  const error = await work.then(
    () => null,
    (reason: unknown) => reason,
  );
  if (!(error instanceof SandboxerError)) throw new Error(`No error, or another: ${String(error)}`);
  return error;
}

export async function output(session: SandboxSession, script: string): Promise<string> {
  const { stdout, stderr } = await runShell(session, script, { timeoutSeconds: 30 });
  return `${stdout.toString()}${stderr.toString()}`.trim();
}

export async function owned(extension: Compose, host: PlacementHost, owner = 'tests'): Promise<string[]> {
  const found: string[] = [];
  for await (const { stamp } of extension.listOwned(owner, context(host))) found.push(stamp.attemptId);
  return found;
}
