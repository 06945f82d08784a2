import { exitCodeAfter } from '../process/interrupts.ts';
import { shortDuration } from './relative-time.ts';

const FRAMES = '⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏';
const SHOW_AFTER_MS = 150;
const EVERY_MS = 80;
const CLEAR_LINE = '\r\x1b[2K';

/** Line on stderr that shows the present wait. Only on a terminal, and only after a while. */
export class Progress {
  readonly #active: boolean;
  readonly #startedAt = Date.now();
  #text: string;
  #timer: NodeJS.Timeout | null = null;
  #frame = 0;
  #shown = false;

  constructor(text: string, active: boolean) {
    this.#text = text;
    this.#active = active && process.stderr.isTTY === true;
    if (!this.#active) return;
    this.#timer = setTimeout(() => this.#start(), SHOW_AFTER_MS).unref();
    // Without another handler of Ctrl-C, the line is removed and the command ends.
    if (process.listenerCount('SIGINT') === 0) process.once('SIGINT', this.#interrupted);
  }

  /** Whether the line can be seen: stderr is a terminal. */
  get isShown(): boolean {
    return this.#active;
  }

  update(text: string): void {
    this.#text = text;
  }

  /** Removes the line. */
  stop(): void {
    process.off('SIGINT', this.#interrupted);
    if (this.#timer) clearInterval(this.#timer);
    this.#timer = null;
    if (this.#shown) process.stderr.write(CLEAR_LINE);
    this.#shown = false;
  }

  async during<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } finally {
      this.stop();
    }
  }

  readonly #interrupted = () => {
    this.stop();
    process.exit(exitCodeAfter('SIGINT'));
  };

  #start(): void {
    this.#timer = setInterval(() => this.#draw(), EVERY_MS).unref();
    this.#draw();
  }

  #draw(): void {
    this.#frame = (this.#frame + 1) % FRAMES.length;
    const seconds = (Date.now() - this.#startedAt) / 1000;
    const time = seconds >= 1 ? ` ${shortDuration(seconds)}` : '';
    const width = (process.stderr.columns ?? 80) - 1;
    this.#shown = true;
    process.stderr.write(CLEAR_LINE + `${FRAMES[this.#frame]} ${this.#text}${time}`.slice(0, width));
  }
}
