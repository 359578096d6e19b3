import { backoff } from './backoff.ts';
import { headers, Refusal, refusal } from './client.ts';
import { EventReader } from './events.ts';

/** How a stream is. Times are milliseconds of the reader's own clock. */
export type LinkState =
  | { kind: 'opening' }
  | { kind: 'live' }
  | { kind: 'lost'; since: number; retryAt: number }
  | { kind: 'waiting'; since: number; retryAt: number; words: string }
  | { kind: 'refused'; refusal: Refusal };

export interface Follower {
  onView(view: unknown): void;
  onState(state: LinkState): void;
}

/** The world outside, so that tests can be quick about it. */
export interface World {
  fetch: typeof fetch;
  now(): number;
  random(): number;
  wait(milliseconds: number, signal: AbortSignal): Promise<void>;
}

export const WORLD: World = {
  fetch: (...asked) => fetch(...asked),
  now: () => Date.now(),
  random: () => Math.random(),
  wait: (milliseconds, signal) =>
    new Promise((done) => {
      const timer = setTimeout(done, milliseconds);
      const early = () => {
        clearTimeout(timer);
        done();
      };
      signal.addEventListener('abort', early, { once: true });
    }),
};

// The server says something each 15 s, if only a comment.
const SILENCE = 40_000;
// Not now: another one leads, or too many pages are open.
const BUSY = [429, 503];
const isFinal = (status: number) => status >= 400 && status < 500 && !BUSY.includes(status);
// A stream that the server ended after a while is opened anew without a word.
const AFTER_END = 300;

export interface Following {
  stop(): void;
  /** Do not wait for the next try. */
  retry(): void;
}

/** Follow a view, and come back by itself when the connection is lost, until it is stopped. */
export function follow(path: string, follower: Follower, world: World = WORLD): Following {
  const ended = new AbortController();
  let waiting = new AbortController();
  let failures = 0;
  let since: number | null = null;

  const wait = async (milliseconds: number) => {
    waiting = new AbortController();
    ended.signal.addEventListener('abort', () => waiting.abort(), { once: true });
    await world.wait(milliseconds, waiting.signal);
  };

  const isStopped = () => ended.signal.aborted;

  const failed = async (error: unknown) => {
    failures += 1;
    since ??= world.now();
    const pause = backoff(failures, world.random()) * 1000;
    const when = { since, retryAt: world.now() + pause };
    const busy = error instanceof Refusal && BUSY.includes(error.status);
    follower.onState(
      busy ? { kind: 'waiting', words: error.message, ...when } : { kind: 'lost', ...when },
    );
    await wait(pause);
  };

  const live = () => {
    failures = 0;
    since = null;
    follower.onState({ kind: 'live' });
  };

  const run = async () => {
    follower.onState({ kind: 'opening' });
    while (!isStopped()) {
      try {
        const seen = await read(path, follower, live, ended.signal, world);
        if (isStopped()) return;
        since = world.now();
        // One that ends before it said anything is no stream: something before the server ends it.
        if (seen) await wait(AFTER_END);
        else await failed(null);
      } catch (error) {
        if (isStopped()) return;
        if (error instanceof Refusal && isFinal(error.status)) {
          follower.onState({ kind: 'refused', refusal: error });
          return;
        }
        await failed(error);
      }
    }
  };

  void run();
  return { stop: () => ended.abort(), retry: () => waiting.abort() };
}

// What a stream ends with that has only lived long enough.
const OVER = 200;

/** Read one stream to its end; whether it brought a view. Its last event says why it ends. */
async function read(
  path: string,
  follower: Follower,
  live: () => void,
  ended: AbortSignal,
  world: World,
): Promise<boolean> {
  const own = new AbortController();
  const end = () => own.abort();
  ended.addEventListener('abort', end, { once: true });
  let silence = setTimeout(end, SILENCE);
  try {
    const response = await world.fetch(`/api/v1/stream?view=${encodeURIComponent(path)}`, {
      headers: { ...headers(), Accept: 'application/json, text/event-stream' },
      cache: 'no-store',
      redirect: 'error',
      signal: own.signal,
    });
    if (!response.ok) throw await refusal(response);
    if (!response.body) return false;
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    const events = new EventReader();
    let seen = false;
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return seen;
      clearTimeout(silence);
      silence = setTimeout(end, SILENCE);
      for (const event of events.push(value)) {
        if (event.name === 'end') {
          const { status, error } = JSON.parse(event.data) as { status: number; error: string };
          if (status === OVER) return seen;
          throw new Refusal(status, error);
        }
        if (event.name !== 'view') continue;
        if (!seen) live();
        seen = true;
        follower.onView(JSON.parse(event.data));
      }
    }
  } finally {
    clearTimeout(silence);
    ended.removeEventListener('abort', end);
    own.abort();
  }
}
