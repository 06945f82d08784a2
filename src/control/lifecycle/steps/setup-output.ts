import { StringDecoder } from 'node:string_decoder';
import type { OutputChunk, OutputGap } from '../../../core/ports/session.ts';

const KEPT_CHARACTERS = 32_768;
const decoder = () => new StringDecoder('utf8');
const BLOT = '[secret]';

/** The end of what a program wrote, without the secrets that it could see. */
export class SetupOutput {
  readonly #secrets: readonly string[];
  /** A secret may lie across the beginning of what is kept: so much more is looked at. */
  readonly #margin: number;
  readonly #decoders = { stdout: decoder(), stderr: decoder(), terminal: decoder() };
  #text = '';
  #truncated = false;

  constructor(secrets: readonly string[]) {
    // The longest first: one may be part of another.
    this.#secrets = secrets.filter((value) => value !== '').sort((a, b) => b.length - a.length);
    this.#margin = this.#secrets[0]?.length ?? 0;
  }

  get truncated(): boolean {
    return this.#truncated;
  }

  add(chunk: OutputChunk | OutputGap): void {
    if (chunk.stream === 'gap') {
      this.#truncated = true;
      return;
    }
    this.#text += this.#decoders[chunk.stream].write(Buffer.from(chunk.data));
    const most = KEPT_CHARACTERS + this.#margin;
    if (this.#text.length <= most) return;
    this.#text = this.#text.slice(-most);
    this.#truncated = true;
  }

  text(): string {
    let text = this.#text;
    for (const secret of this.#secrets) text = text.replaceAll(secret, BLOT);
    return this.#truncated ? text.slice(this.#margin).slice(-KEPT_CHARACTERS) : text;
  }
}
