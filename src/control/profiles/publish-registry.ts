import { SandboxerError } from '../../contract/errors/errors.ts';
import { CAPABILITY_ID, CAPABILITY_STATUS } from '../../contract/extensions/capability-entry.ts';
import type { CapabilityStatus } from '../../contract/extensions/federated-capability.ts';
import type { PublishedAs, RegistryFile, RegistryProblem } from '../../core/ports/published-registry.ts';
import type { Caller } from '../../core/tenancy/caller.ts';
import { requireScope } from '../../core/tenancy/caller.ts';
import type { Control } from '../control.ts';
import type { ControlPorts } from '../ports/control-ports.ts';
import { auditedTransaction } from '../requests/audit.ts';

export interface RegistryPublication {
  readonly capability: string;
  readonly status: CapabilityStatus;
  readonly target: string;
  readonly outcome: PublishedAs;
  readonly files: number;
}

function registryOf(deps: ControlPorts) {
  const { publishedRegistry } = deps;
  if (publishedRegistry !== undefined) return publishedRegistry;
  throw new SandboxerError('SBX_UNSUPPORTED', 'This server has no registry folder.');
}

/** Checks the given files, or the registry of this installation where none are given. Nothing is stored. */
export async function checkRegistry(
  control: Control,
  caller: Caller,
  { files: given }: { readonly files: readonly RegistryFile[] | null },
): Promise<{ readonly files: number; readonly problems: readonly RegistryProblem[] }> {
  requireScope(caller, 'read');
  const registry = registryOf(control);
  const files = given ?? (await registry.files());
  return { files: files.length, problems: await registry.check(files) };
}

/** Publishes the capability entry of this installation to the federation that the configuration names. */
export async function publishRegistry(
  control: Control,
  caller: Caller,
  { signal }: { readonly signal: AbortSignal },
): Promise<RegistryPublication> {
  requireScope(caller, 'server');
  const registry = registryOf(control);
  const { publisher } = registry;
  if (publisher === null)
    throw new SandboxerError('SBX_UNSUPPORTED', 'reuse_surface is not configured.', {
      field: 'reuse_surface',
      remedy: 'Name the hub or a directory in reuse_surface of the configuration, and restart the server.',
    });
  const files = await registry.files();
  const problems = await registry.check(files);
  if (problems.length > 0)
    throw new SandboxerError('SBX_PUBLISH_FAILED', 'The registry of this installation is not valid.', {
      retryable: false,
      issues: problems.map(({ file, problem }) => ({ field: file, problem })),
      remedy: 'Install sandboxer again; "sandboxer registry validate" lists the problems.',
    });
  const outcome = await publisher.publish(files, signal);
  const { target } = publisher;
  const subject = { action: 'publishRegistry', target, details: { capability: CAPABILITY_ID, outcome } };
  await auditedTransaction(control, caller, { label: 'registry', subject }, async () => {});
  return { capability: CAPABILITY_ID, status: CAPABILITY_STATUS, target, outcome, files: files.length };
}
