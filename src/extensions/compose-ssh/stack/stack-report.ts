/** Reports on a stack's services: their endpoints, and errors for a service that does not become ready. */
import { SandboxerError } from '../../../contract/errors/errors.ts';
import type { Ready } from '../../../core/ports/extension.ts';
import { GATEWAY } from '../compose/plan/plan-stack.ts';
import { BACKEND } from '../remote/failure.ts';
import type { StackHandle } from '../remote/stack-handle.ts';
import type { ContainerState } from '../remote/stack-state.ts';
import { servicesOf } from '../remote/stack-state.ts';

/** Returns ports on the loopback of the host, published by the engine or the gateway. */
export function endpointsOf(
  stack: StackHandle,
  states: readonly ContainerState[],
): Ready['reachability']['endpoints'] {
  return states.flatMap(({ service, published }) =>
    published.map(({ target, hostPort }) => {
      const behind = service === GATEWAY ? stack.gateway[String(target)] : undefined;
      const port = behind?.target ?? target;
      return { name: `${behind?.service ?? service}:${port}`, port, url: `tcp://127.0.0.1:${hostPort}` };
    }),
  );
}

function told(states: readonly ContainerState[]): string {
  return servicesOf(states)
    .map(({ name, state, health }) => `${name} ${state}${health === null ? '' : ` (${health})`}`)
    .join(', ');
}

export function noneRunning(stack: StackHandle, states: readonly ContainerState[]): never {
  throw new SandboxerError(
    'SBX_COMPOSE_INVALID',
    `Nothing can be run in ${stack.service}: ${told(states) || 'it has no container'}.`,
    {
      backend: BACKEND,
      creation: 'created',
      remedy: 'See why the service ended; or name a service that keeps running in the input "service".',
    },
  );
}

/** Blames the stack, as for a dependency that does not become healthy: the request itself chose the wait. */
export function notComing(name: string, states: readonly ContainerState[]): SandboxerError {
  const detail = `${name} was waited for and is not healthy: ${told(states)}.`;
  return new SandboxerError('SBX_COMPOSE_INVALID', detail, {
    backend: BACKEND,
    creation: 'created',
    remedy: 'See the log of the service; wait longer, or leave it out of wait_for to get the stack as it is.',
  });
}
