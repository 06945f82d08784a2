import type { CreateOptions } from '../../client/resources/sandboxes.ts';
import type { SandboxerClient } from '../../client/sandboxer-client.ts';
import type { Sandbox } from '../../contract/sandboxes/sandbox.ts';
import type { DeriveFlags } from '../args/derive-options.ts';
import { deriveRequestOf } from '../args/derive-options.ts';
import type { Invocation } from '../invocation/invocation.ts';
import { establishedText } from '../output/sandbox-view.ts';
import { establish } from './establish.ts';

type Derive = (
  client: SandboxerClient,
  request: ReturnType<typeof deriveRequestOf>,
  options: CreateOptions,
) => Promise<Sandbox>;

/** Runs `fork` and `restore`: makes a new sandbox from an existing one, with the output of `create`. */
export async function deriveSandbox(
  invocation: Invocation,
  what: string,
  flags: DeriveFlags,
  derive: Derive,
): Promise<void> {
  const { printer } = invocation;
  const client = await invocation.client();
  const startedAt = Date.now();
  const work = establish(client, { wait: flags.wait ? 'ready' : 'none' }, (options) =>
    derive(client, deriveRequestOf(flags), options),
  );
  const sandbox = await invocation.progress(what).during(work);
  printer.result(sandbox, () => {
    printer.line(sandbox.sandbox_id);
    printer.note(establishedText(sandbox, Date.now() - startedAt, Date.now()));
  });
}
