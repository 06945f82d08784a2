import { mkdirSync, realpathSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { SandboxerError } from '../../../contract/errors/errors.ts';
import type { StubWorld } from '../world/world.ts';
import type { Origin, StubEvent } from '../world/world-event.ts';
import { copyTree, Machine } from './machine.ts';
import { eradicateTree } from './process-tree.ts';

/** Applies the events of the world to directories and processes, in order for each object. */
export class Machines {
  readonly #directory: string;
  readonly #id: string;
  readonly #world: StubWorld;
  readonly #machines = new Map<string, Machine>();
  readonly #work = new Map<string, Promise<void>>();

  constructor(directory: string, id: string, world: StubWorld) {
    mkdirSync(join(directory, 'objects'), { recursive: true });
    mkdirSync(join(directory, 'snapshots'), { recursive: true });
    this.#directory = realpathSync(directory);
    this.#id = id;
    this.#world = world;
    for (const { name } of world.objects()) this.#machine(name);
  }

  follow(event: StubEvent): void {
    switch (event.type) {
      case 'created':
        this.#queue([event.name, ...this.#keysOf(event.from)], async () => {
          await this.#build(event.name, event.boot, event.from);
        });
        break;
      case 'deleting':
        this.#queue([event.name], async () => await this.#destroy(event.name));
        break;
      case 'paused':
        this.#queue([event.name], async () => this.#machine(event.name).freeze());
        break;
      case 'resumed':
        this.#queue([event.name], async () => this.#machine(event.name).thaw());
        break;
      case 'snapshot_taken':
        this.#queue([event.source, this.#snapshotPath(event.snapshotId)], async () => {
          await this.#copyFrozen(event.source, this.#snapshotPath(event.snapshotId));
        });
        break;
      case 'snapshot_deleted':
        this.#queue([this.#snapshotPath(event.snapshotId)], async () => {
          await rm(this.#snapshotPath(event.snapshotId), { recursive: true, force: true });
        });
        break;
    }
  }

  /** Continues the work of a previous process of the stub. Its processes have lost their output and are killed. */
  async recover(): Promise<void> {
    await eradicateTree({ marker: this.#marker(), directory: join(this.#directory, 'objects') });
    for (const object of this.#world.objects()) {
      if (object.state === 'deleting') this.follow({ type: 'deleting', name: object.name });
      else if (!object.bodyReady) {
        const boot = { env: {}, files: [] };
        this.follow({ type: 'created', name: object.name, boot, from: null });
      }
    }
  }

  find(name: string): Machine {
    const machine = this.#machines.get(name);
    if (machine !== undefined) return machine;
    throw new SandboxerError('SBX_BACKEND_LOST', `There is no "${name}".`);
  }

  /** Resolves when all events of this object so far are applied. */
  async settled(name: string): Promise<void> {
    await this.#work.get(name);
  }

  async killAll(): Promise<void> {
    for (const machine of this.#machines.values()) await machine.killAll();
  }

  #machine(name: string): Machine {
    const existing = this.#machines.get(name);
    if (existing !== undefined) return existing;
    const marker = `${this.#marker()}${name}/`;
    const machine = new Machine(join(this.#directory, 'objects', name), marker);
    this.#machines.set(name, machine);
    return machine;
  }

  /** Prefix of a variable in the environment of every process of this stub. */
  #marker(): string {
    return `SANDBOXER_STUB_OBJECT=${this.#id}/`;
  }

  #snapshotPath(id: string): string {
    return join(this.#directory, 'snapshots', id);
  }

  #keysOf(origin: Origin): string[] {
    if (origin === null) return [];
    return ['name' in origin ? origin.name : this.#snapshotPath(origin.snapshotId)];
  }

  async #build(name: string, boot: Parameters<Machine['build']>[0], from: Origin): Promise<void> {
    const machine = this.#machine(name);
    if (from === null) await machine.build(boot, null);
    else if ('snapshotId' in from) await machine.build(boot, this.#snapshotPath(from.snapshotId));
    else {
      await this.#copyFrozen(from.name, machine.root);
      await machine.build(boot, null);
    }
    this.#world.bodyReady(name);
  }

  /** Copies one moment: processes of the source are frozen meanwhile. */
  async #copyFrozen(source: string, target: string): Promise<void> {
    const machine = this.find(source);
    machine.freeze();
    try {
      await copyTree(machine.root, target);
    } finally {
      const paused = this.#world.objects().some(({ name, state }) => name === source && state === 'paused');
      if (!paused) machine.thaw();
    }
  }

  async #destroy(name: string): Promise<void> {
    await this.#machine(name).destroy();
    this.#machines.delete(name);
    this.#world.bodyGone(name);
  }

  #queue(keys: readonly string[], work: () => Promise<void>): void {
    const before = Promise.allSettled(keys.map((key) => this.#work.get(key)));
    const done = before.then(work);
    done.catch((error: unknown) => process.stderr.write(`${String(error)}\n`));
    for (const key of keys) {
      this.#work.set(key, done);
      const forget = () => {
        if (this.#work.get(key) === done) this.#work.delete(key);
      };
      done.then(forget, forget);
    }
  }
}
