import type { ServerResponse } from 'node:http';

import { AT } from './build.ts';
import { view } from './views.ts';
import type { World } from './world.ts';
import { WORLDS } from './worlds.ts';

/** How the server is for a token; tests set it. */
export type Mode = 'well' | 'lost' | 'standby' | 'expired' | 'forbidden';

/** With which status and words all is refused, and streams end; null: the connection is cut. */
export const WHY: Readonly<Record<Exclude<Mode, 'well'>, readonly [number, string] | null>> = {
  lost: null,
  standby: [503, 'this replica does not lead; try again'],
  expired: [401, 'This token has expired.'],
  forbidden: [403, 'You may list gpujobs in no namespace.'],
};

const SECOND = 1000;
const HEARTBEAT = 15;

/** What one token sees: a world of its own, and the streams that it has open. */
export class Session {
  mode: Mode = 'well';
  readonly world: World;
  readonly #began = Date.now();
  readonly #streams = new Map<ServerResponse, string>();
  #seconds = 0;

  constructor(make: () => World) {
    this.world = make();
    setInterval(() => this.#tick(), SECOND).unref();
  }

  follow(address: string, response: ServerResponse): void {
    this.#streams.set(response, address);
    response.on('close', () => this.#streams.delete(response));
    this.#send(response, address);
  }

  set(mode: Mode): void {
    this.mode = mode;
    if (mode === 'well') return;
    for (const response of this.#streams.keys()) {
      const why = WHY[mode];
      if (!why) {
        response.destroy();
        continue;
      }
      response.end(`event: end\ndata: ${JSON.stringify({ status: why[0], error: why[1] })}\n\n`);
    }
  }

  /** Tell all that follow what is now. */
  changed(): void {
    for (const [response, address] of this.#streams) this.#send(response, address);
  }

  get open(): number {
    return this.#streams.size;
  }

  #send(response: ServerResponse, address: string): void {
    this.world.at = AT + (Date.now() - this.#began) / SECOND;
    response.write(`event: view\ndata: ${JSON.stringify(view(this.world, address))}\n\n`);
  }

  #tick(): void {
    this.#seconds += 1;
    if (this.world.move) {
      this.world.move(this.#seconds);
      this.changed();
    } else if (this.#seconds % HEARTBEAT === 0) {
      for (const response of this.#streams.keys()) response.write(': still here\n\n');
    }
  }
}

const sessions = new Map<string, Session>();

/** The session of a token such as `cluster` or `cluster.7`; null: no world is called like that. */
export function sessionOf(token: string): Session | null {
  const known = sessions.get(token);
  if (known) return known;
  const make = WORLDS[token.split('.')[0] ?? ''];
  if (!make) return null;
  const made = new Session(make);
  sessions.set(token, made);
  return made;
}
