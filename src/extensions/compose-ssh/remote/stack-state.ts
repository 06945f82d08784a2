import { z } from 'zod';
import type { Reachability } from '../../../contract/sandboxes/sandbox.ts';
import { LABEL } from './labels.ts';

const Container = z.object({
  id: z.string(),
  labels: z.record(z.string(), z.string()).nullable(),
  state: z.object({
    Status: z.string(),
    ExitCode: z.number(),
    Error: z.string().optional(),
    StartedAt: z.string().optional(),
    Health: z.object({ Status: z.string() }).nullish(),
  }),
  ports: z
    .record(z.string(), z.array(z.object({ HostIp: z.string(), HostPort: z.string() })).nullable())
    .nullable(),
  user: z.string(),
  cwd: z.string(),
  image: z.string(),
});

export interface ContainerState {
  readonly id: string;
  readonly service: string;
  readonly number: number;
  readonly status: string;
  readonly exitCode: number;
  readonly error: string;
  readonly startedAt: string;
  /** `null`: it has no health check. */
  readonly health: string | null;
  readonly published: readonly { readonly target: number; readonly hostPort: number }[];
  readonly user: string;
  readonly cwd: string;
}

const MOST_CONTAINERS = 1_000;

/** Parses the containers of a stack, one line of JSON each. A line of another form is left out. */
export function readStates(text: string): ContainerState[] {
  return text
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .slice(0, MOST_CONTAINERS)
    .flatMap((line) => {
      const parsed = Container.safeParse(JSON.parse(line));
      if (!parsed.success) return [];
      const { id, labels, state, ports, user, cwd } = parsed.data;
      const service = labels?.[LABEL.service];
      if (service === undefined) return [];
      return [
        {
          id,
          service,
          number: Number(labels?.['com.docker.compose.container-number'] ?? 1),
          status: state.Status,
          exitCode: state.ExitCode,
          error: state.Error ?? '',
          startedAt: state.StartedAt ?? '',
          health: state.Health?.Status ?? null,
          published: Object.entries(ports ?? {}).flatMap(([key, bindings]) =>
            (bindings ?? []).map(({ HostPort }) => ({
              target: Number(key.split('/')[0]),
              hostPort: Number(HostPort),
            })),
          ),
          user,
          cwd,
        },
      ];
    })
    .sort((a, b) => a.service.localeCompare(b.service) || a.number - b.number);
}

/** Returns the state that the engine reports for services: data, no verdict of the backend. */
export function servicesOf(states: readonly ContainerState[]): Reachability['services'] {
  return states.map(({ service, number, status, exitCode, health }) => ({
    name: number > 1 ? `${service}-${number}` : service,
    state: status === 'exited' ? `exited (${exitCode})` : status,
    health,
  }));
}

/** Returns whether the awaited condition has come, or never will. */
export function waitedFor(name: string, states: readonly ContainerState[]): 'yes' | 'not yet' | 'never' {
  const all = states.filter(({ service }) => service === name);
  if (all.length === 0) return 'never';
  const verdicts = all.map(({ status, exitCode, health }) => {
    if (status === 'exited' || status === 'dead') return exitCode === 0 ? 'yes' : 'never';
    if (status !== 'running') return 'not yet';
    return health === null || health === 'healthy' ? 'yes' : 'not yet';
  });
  if (verdicts.includes('never')) return 'never';
  return verdicts.includes('not yet') ? 'not yet' : 'yes';
}
