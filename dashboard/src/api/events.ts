export interface ServerEvent {
  readonly name: string;
  readonly data: string;
}

/** Reads server-sent events out of a stream that arrives in pieces cut anywhere. */
export class EventReader {
  #rest = '';
  #name = '';
  #data: string[] = [];

  /** The events that are complete with this piece; comments are heartbeats, and are none. */
  push(piece: string): ServerEvent[] {
    const events: ServerEvent[] = [];
    const lines = (this.#rest + piece).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const raw of lines) {
      const line = raw.endsWith('\r') ? raw.slice(0, -1) : raw;
      if (line === '') {
        if (this.#data.length > 0) {
          events.push({ name: this.#name || 'message', data: this.#data.join('\n') });
        }
        this.#name = '';
        this.#data = [];
        continue;
      }
      const colon = line.indexOf(':');
      const field = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
      if (field === 'event') this.#name = value;
      if (field === 'data') this.#data.push(value);
    }
    return events;
  }
}
