/** Just enough of an extension to run the conformance suite on an agent. */
import { posix } from 'node:path';
import type { CapabilityVector } from '../../../src/contract/extensions/capability.ts';
import type {
  Extension,
  ExtensionHeader,
  Handle,
  ProvisionSpec,
  Stamp,
} from '../../../src/core/ports/extension.ts';
import { refuseMisfit } from '../../../src/core/routing/refuse-misfit.ts';
import type { RunningAgent } from './running-agent.ts';

const CAPABILITIES: CapabilityVector = {
  isolation: ['none'],
  egress: 'none',
  deny_all: false,
  open_network: true,
  credentials: [],
  dead_man: 'none',
  snapshot: 'none',
  snapshot_destructive: false,
  fork: false,
  pause: 'none',
  persistence: ['ephemeral'],
  exec: true,
  pty: true,
  background: true,
  files: true,
  watch: true,
  ports: true,
  ssh: false,
  resources: [],
  images: ['none'],
  regions: [],
  gpu: [],
  max_ttl_seconds: null,
  pricing: 'free',
  latency_class: 'instant',
  hosting: 'self-hosted',
  host_root: true,
  elevated: false,
  demo: true,
};

export class AgentExtension implements Extension {
  readonly header: ExtensionHeader = {
    id: 'ext.agent-test',
    title: 'One agent for each sandbox',
    handleVersion: 1,
    capabilities: CAPABILITIES,
    price: null,
    provisionTimeoutSeconds: 30,
  };
  readonly #start: () => Promise<RunningAgent>;
  readonly #agents = new Map<string, { agent: Promise<RunningAgent>; spec: ProvisionSpec }>();

  constructor(start: () => Promise<RunningAgent>) {
    this.#start = start;
  }

  async probe() {
    return { status: 'healthy' as const, detail: '', checked_at: new Date().toISOString(), checks: [] };
  }

  async provision(spec: ProvisionSpec, ctx: { signal: AbortSignal }): Promise<Handle> {
    refuseMisfit(this.header, spec);
    ctx.signal.throwIfAborted();
    const { attemptId } = spec.stamp;
    if (!this.#agents.has(attemptId)) this.#agents.set(attemptId, { agent: this.#start(), spec });
    await this.#agents.get(attemptId)?.agent;
    return { version: 1, data: attemptId };
  }

  async waitReady() {
    const reachability = { exec_url: null, ssh: null, tunnel_ref: null, endpoints: [], services: [] };
    return { reachability, isolation: 'none', notes: [] };
  }

  async connect({ data }: Handle) {
    const found = this.#agents.get(String(data));
    if (found === undefined) throw new Error('There is no such agent.');
    const session = await (await found.agent).connect();
    const { variables } = found.spec.recipe;
    const spawn = session.spawn.bind(session);
    session.spawn = (spec, options) => spawn({ ...spec, env: { ...variables, ...spec.env } }, options);
    return session;
  }

  async teardown({ stamp }: { readonly stamp: Stamp }) {
    const found = this.#agents.get(stamp.attemptId);
    if (found === undefined || found.spec.stamp.owner !== stamp.owner)
      return { gone: true, removed: [], remaining: [] };
    await (await found.agent).stop();
    this.#agents.delete(stamp.attemptId);
    return { gone: true, removed: [posix.basename(stamp.attemptId)], remaining: [] };
  }

  async *listOwned(owner: string) {
    for (const { spec } of [...this.#agents.values()]) {
      if (spec.stamp.owner !== owner) continue;
      yield { stamp: spec.stamp, handle: { version: 1, data: spec.stamp.attemptId }, createdAt: null };
    }
  }
}
