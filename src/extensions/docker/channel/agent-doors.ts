import { AgentDoor, doorsIn, removeDoor } from '../../shared/channel/agent-door.ts';
import { BACKEND } from '../engine/engine-error.ts';
import { isDoor } from './reach.ts';

/** The doors of one engine's sandboxes, each opened at its first use. */
export class AgentDoors {
  readonly #directory: string;
  readonly #doors = new Map<string, Promise<AgentDoor>>();

  constructor(directory: string) {
    this.#directory = directory;
  }

  open(name: string): Promise<AgentDoor> {
    let door = this.#doors.get(name);
    if (door === undefined) {
      door = AgentDoor.open(this.#directory, name, { backend: BACKEND, sharedKernel: true });
      door.catch(() => this.#doors.delete(name));
      this.#doors.set(name, door);
    }
    return door;
  }

  async remove(name: string): Promise<void> {
    if (!isDoor(name)) return;
    const door = this.#doors.get(name);
    this.#doors.delete(name);
    if (door !== undefined) (await door.catch(() => null))?.close();
    removeDoor(this.#directory, name);
  }

  /** Removes the doors that an earlier process left and no sandbox uses. */
  async removeOthers(kept: ReadonlySet<string | undefined>): Promise<void> {
    for (const name of doorsIn(this.#directory))
      if (!kept.has(name) && !this.#doors.has(name)) await this.remove(name);
  }

  async close(): Promise<void> {
    for (const door of this.#doors.values()) (await door.catch(() => null))?.close();
    this.#doors.clear();
  }
}
