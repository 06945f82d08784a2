import type { CreateSandboxInput } from '../../contract/sandboxes/sandbox.ts';
import type { StackPlan } from '../../contract/sandboxes/stack-plan.ts';
import type { CallOptions, Transport } from '../transport/transport.ts';

export class Stacks {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Returns the plan of a create for a compose stack. Nothing is started. */
  plan(request: CreateSandboxInput = {}, options: CallOptions = {}): Promise<StackPlan> {
    return this.#transport.json({ ...options, method: 'POST', path: '/v1/stacks/plan', json: request });
  }
}
