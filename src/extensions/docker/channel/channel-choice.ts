/** How sandboxes of one engine are reached: chosen by what is known of it, and again when it turns out otherwise. */
import { closeSync, openSync, readSync } from 'node:fs';
import type { IsolationLevel } from '../../../contract/extensions/capability.ts';
import type { ChannelKind } from '../containers/container-config.ts';
import type { DockerOptions } from '../containers/options.ts';
import { AgentEnded, EngineError } from '../engine/engine-error.ts';

/** Processors by the number that an ELF file has for them, as images and as engines call them. */
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

/** Names of the processor that a program was built for; none when it cannot be read. */
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
/** By its limits, or by somebody. */
const KILLED = 137;
const OF_AGENT = /\/\.sandboxer\/agent/;

export interface Lesser {
  readonly channel: ChannelKind;
  /** Whether the engine itself is so, and not only the image. */
  readonly everywhere: boolean;
}

const BEST_FIRST: readonly ChannelKind[] = ['call', 'relay', 'exec'];

/** Of two channels, the one that asks less. */
export function lesserOf(one: ChannelKind, other: ChannelKind): ChannelKind {
  return BEST_FIRST.indexOf(one) > BEST_FIRST.indexOf(other) ? one : other;
}

/** Whether the kernel inside is another one than the machine's. */
export function isStronger(isolation: IsolationLevel): boolean {
  return isolation === 'gvisor' || isolation === 'microvm';
}

function wallOf(isolation: IsolationLevel): 'wall' | 'stronger' {
  return isStronger(isolation) ? 'stronger' : 'wall';
}

export class ChannelChoice {
  readonly #fixed: ChannelKind | null;
  readonly #processor: readonly string[];
  /** The best that this engine is known to take, behind its own wall and behind a stronger one. */
  readonly #best: { wall: ChannelKind; stronger: ChannelKind };

  constructor(options: Pick<DockerOptions, 'channel'>, local: boolean, agentPath: string) {
    this.#fixed = options.channel === undefined || options.channel === 'auto' ? null : options.channel;
    this.#processor = processorOf(agentPath);
    // Sockets of this machine do not reach into a stronger wall; a relay that the engine starts does.
    this.#best = { wall: local ? 'call' : 'relay', stronger: 'relay' };
  }

  /** Whether the agent can run on it; what does not say is believed to be like us. */
  fits(architecture: string): boolean {
    return architecture === '' || this.#processor.length === 0 || this.#processor.includes(architecture);
  }

  for(isolation: IsolationLevel, engine: string): ChannelKind {
    if (this.#fixed !== null) return this.#fixed;
    return this.fits(engine) ? this.#best[wallOf(isolation)] : 'exec';
  }

  /**
   * What to try when it did not work this way, or `null` when that would not help. That the engine does not see our files
   * holds for whatever it runs; that the agent does not run may be the image's own doing, and is nobody else's loss.
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
