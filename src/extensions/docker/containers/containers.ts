/** The server's containers on one engine, by their names. */

import type { EngineClient } from '../engine/engine-client.ts';
import { isConflict, isMissing } from '../engine/engine-error.ts';
import { Container, ContainerList, Created } from '../engine/engine-replies.ts';
import type { LimitFields } from './container-config.ts';
import type { Kind } from './labels.ts';
import { LABEL } from './labels.ts';

const REMOVE_MS = 120_000;

export interface Listed {
  readonly name: string;
  readonly createdAt: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly state: string;
}

function at(name: string, verb = ''): string {
  return `/containers/${encodeURIComponent(name)}${verb}`;
}

function within(signal: AbortSignal | undefined): { signal?: AbortSignal } {
  return signal === undefined ? {} : { signal };
}

export class Containers {
  readonly #client: EngineClient;

  constructor(client: EngineClient) {
    this.#client = client;
  }

  /** Returns `false` when a container of that name exists. */
  async create(name: string, config: object, signal?: AbortSignal): Promise<boolean> {
    try {
      await this.#client.call(Created, 'POST', '/containers/create', {
        query: { name },
        body: config,
        ...within(signal),
      });
      return true;
    } catch (error) {
      if (isConflict(error)) return false;
      throw error;
    }
  }

  async start(name: string, signal?: AbortSignal): Promise<void> {
    await this.#client.send('POST', at(name, '/start'), within(signal));
  }

  async find(name: string, signal?: AbortSignal): Promise<Container | null> {
    try {
      return await this.#client.call(Container, 'GET', at(name, '/json'), within(signal));
    } catch (error) {
      if (isMissing(error)) return null;
      throw error;
    }
  }

  async list(owner: string, signal?: AbortSignal): Promise<Listed[]> {
    const all = await this.#labelled(`${LABEL.owner}=${owner}`, signal);
    return all.filter(({ labels }) => labels[LABEL.owner] === owner);
  }

  /** Lists containers with the server's marks, of any owner, without those of stacks, which belong to ext.compose-ssh. */
  async marked(signal?: AbortSignal): Promise<Listed[]> {
    const all = await this.#labelled(LABEL.owner, signal);
    return all.filter(({ labels }) => labels[LABEL.stack] === undefined);
  }

  /** Lists containers of any owner: one that belongs to no sandbox has none. */
  async ofKind(kind: Kind): Promise<Listed[]> {
    return await this.#labelled(`${LABEL.kind}=${kind}`, undefined);
  }

  async #labelled(label: string, signal: AbortSignal | undefined): Promise<Listed[]> {
    const all = await this.#client.call(ContainerList, 'GET', '/containers/json', {
      query: { all: 'true', filters: JSON.stringify({ label: [label] }) },
      ...within(signal),
    });
    return all.flatMap(({ Names: [name], Created: seconds, Labels: labels, State: state }) =>
      name === undefined ? [] : [{ name: name.replace(/^\//, ''), createdAt: seconds * 1000, labels, state }],
    );
  }

  /** Resolves when the engine has removed it. */
  async remove(name: string): Promise<void> {
    try {
      await this.#client.send('DELETE', at(name), {
        query: { force: 'true', v: 'true' },
        timeoutMs: REMOVE_MS,
      });
    } catch (error) {
      // Another process is removing it already.
      if (!isMissing(error) && !isConflict(error)) throw error;
    }
  }

  /** Returns `false` when another container has that name. */
  async rename(name: string, to: string): Promise<boolean> {
    try {
      await this.#client.send('POST', at(name, '/rename'), { query: { name: to } });
      return true;
    } catch (error) {
      if (isConflict(error)) return false;
      throw error;
    }
  }

  async limit(name: string, limits: LimitFields): Promise<void> {
    await this.#client.send('POST', at(name, '/update'), { body: limits });
  }

  async pause(name: string, signal: AbortSignal): Promise<void> {
    await this.#send(name, '/pause', signal, (container) => container.State.Paused);
  }

  async resume(name: string, signal: AbortSignal): Promise<void> {
    await this.#send(name, '/unpause', signal, ({ State }) => State.Running && !State.Paused);
  }

  /** Engines differ in how they refuse a state that holds already: so the state is read instead. */
  async #send(
    name: string,
    verb: string,
    signal: AbortSignal,
    done: (container: Container) => boolean,
  ): Promise<void> {
    try {
      await this.#client.send('POST', at(name, verb), { signal });
    } catch (error) {
      const container = await this.find(name, signal).catch(() => null);
      if (container === null || !done(container)) throw error;
    }
  }
}
