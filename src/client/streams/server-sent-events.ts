import { StringDecoder } from 'node:string_decoder';

export interface ServerSentEvent {
  readonly id: string | null;
  readonly event: string;
  readonly data: string;
}

const LINE_END = /[\r\n]/;

/**
 * Decoder of the `text/event-stream` format: takes bytes as they arrive, returns whole events. Comments keep the connection
 * alive.
 */
export class ServerSentEventDecoder {
  readonly #text = new StringDecoder('utf8');
  /** Line that has not ended yet, in the pieces it came in. */
  #rest: string[] = [];
  #id: string | null = null;
  #event = '';
  #data: string[] = [];

  decode(bytes: Buffer): ServerSentEvent[] {
    const events: ServerSentEvent[] = [];
    const text = this.#text.write(bytes);
    // Only the new piece is searched for a line end: earlier pieces have none.
    if (!LINE_END.test(text) && !this.#rest.at(-1)?.endsWith('\r')) {
      if (text !== '') this.#rest.push(text);
      return events;
    }
    this.#rest.push(text);
    const lines = this.#rest.join('').split(/\r\n|\n|\r(?!$)/);
    this.#rest = [lines.pop() ?? ''];
    for (const line of lines) {
      if (line === '') this.#dispatch(events);
      else this.#field(line);
    }
    return events;
  }

  #field(line: string): void {
    const colon = line.indexOf(':');
    if (colon === 0) return;
    const name = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (name === 'data') this.#data.push(value);
    else if (name === 'event') this.#event = value;
    else if (name === 'id' && !value.includes('\0')) this.#id = value;
  }

  #dispatch(events: ServerSentEvent[]): void {
    if (this.#data.length > 0) {
      events.push({ id: this.#id, event: this.#event || 'message', data: this.#data.join('\n') });
    }
    this.#data = [];
    this.#event = '';
  }
}
