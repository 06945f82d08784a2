/** Chooses how sandboxes of one engine are reached: by the known facts, and again when the first choice fails. */
import { closeSync, openSync, readSync } from 'node:fs';
import type { IsolationLevel } from '../../../contract/extensions/capability.ts';
import type { ChannelKind } from '../containers/container-config.ts';
import type { DockerOptions } from '../containers/options.ts';
import { AgentEnded, EngineError } from '../engine/engine-error.ts';

/** Processor names of images and engines, by the number in an ELF file. */
const PROCESSORS: Readonly<Record<number, readonly string[]>> = {
  3: ['386', 'i386', 'i686'],
  40: ['arm', 'armv7l', 'armv6l'],
  62: ['amd64', 'x86_64'],
  183: ['arm64', 'aarch64'],
  243: ['riscv64'],
  21: ['ppc64le'],
  22: ['s390x'],
};
const MACHINE_AT = 18;

/** Returns the names of the processor that a program was built for; none when it cannot be read. */
function processorOf(program: string): readonly string[] {
  const header = Buffer.alloc(MACHINE_AT + 2);
  try {
    const fd = openSync(program, 'r');
    try {
      readSync(fd, header, 0, header.length, 0);
    } finally {
      closeSync(fd);
    }
  } catch {
    return [];
  }
  return PROCESSORS[header.readUInt16LE(MACHINE_AT)] ?? [];
}

const UNSEEN = /bind source path does not exist|invalid mount config|no such file or directory.*mount/i;
const NOT_STARTED = /exec format error|permission denied|operation not permitted|no such file or directory/i;
/** Exit code of a process killed by SIGKILL: for its limits, or by an operator. */
const KILLED = 137;
const OF_AGENT = /\/\.sandboxer\/agent/;

export interface Lesser {
  readonly channel: ChannelKind;
  /** Whether the cause is the engine itself, and not only the image. */
  readonly everywhere: boolean;
}

const BEST_FIRST: readonly ChannelKind[] = ['call', 'relay', 'exec'];

/** Returns the channel that asks less of the engine. */
export function lesserOf(one: ChannelKind, other: ChannelKind): ChannelKind {
  return BEST_FIRST.indexOf(one) > BEST_FIRST.indexOf(other) ? one : other;
}

/** Returns whether the kernel inside is another one than the machine's. */
export function isStronger(isolation: IsolationLevel): boolean {
  return isolation === 'gvisor' || isolation === 'microvm';
}

function wallOf(isolation: IsolationLevel): 'wall' | 'stronger' {
  return isStronger(isolation) ? 'stronger' : 'wall';
}

export class ChannelChoice {
  readonly #fixed: ChannelKind | null;
  readonly #processor: readonly string[];
  /** The best channel known to work, at the usual isolation level and at a stronger one. */
  readonly #best: { wall: ChannelKind; stronger: ChannelKind };

  constructor(options: Pick<DockerOptions, 'channel'>, local: boolean, agentPath: string) {
    this.#fixed = options.channel === undefined || options.channel === 'auto' ? null : options.channel;
    this.#processor = processorOf(agentPath);
    // Sockets of this machine do not reach into a stronger isolation level; a relay that the engine starts does.
    this.#best = { wall: local ? 'call' : 'relay', stronger: 'relay' };
  }

  /** Returns whether the agent can run on this architecture; an unnamed one is taken for this machine's. */
  fits(architecture: string): boolean {
    return architecture === '' || this.#processor.length === 0 || this.#processor.includes(architecture);
  }

  for(isolation: IsolationLevel, engine: string): ChannelKind {
    if (this.#fixed !== null) return this.#fixed;
    return this.fits(engine) ? this.#best[wallOf(isolation)] : 'exec';
  }

  /**
   * Returns the channel to try after a failure, or `null` when another would not help. An engine that does not see this machine's
   * files never will, for any image; an agent that does not run may be the fault of the image, and affects that image only.
   */
  lesser(isolation: IsolationLevel, from: ChannelKind, error: unknown): Lesser | null {
    if (this.#fixed !== null || from === 'exec') return null;
    if (error instanceof AgentEnded)
      return error.exitCode === KILLED ? null : { channel: 'exec', everywhere: false };
    if (!(error instanceof EngineError)) return null;
    const channel = from === 'call' ? 'relay' : 'exec';
    if (UNSEEN.test(error.message)) {
      this.#best[wallOf(isolation)] = channel;
      return { channel, everywhere: true };
    }
    const notStarted = NOT_STARTED.test(error.message) && OF_AGENT.test(error.message);
    return notStarted ? { channel, everywhere: false } : null;
  }
}
