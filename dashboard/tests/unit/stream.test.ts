import { describe, expect, it } from 'vitest';

import { backoff } from '../../src/api/backoff.ts';
import { follow, type LinkState, type World } from '../../src/api/stream.ts';

type Answer = Response | Error;
const stream = (text: string) => new Response(text, { status: 200 });
const end = (status: number) =>
  `event: end\ndata: ${JSON.stringify({ status, error: 'because' })}\n\n`;
const view = (value: number) => `event: view\ndata: ${value}\n\n`;

/** A world that gives these answers, one after the other, and then stops what follows it. */
async function followed(answers: readonly Answer[]) {
  const views: unknown[] = [];
  const states: LinkState[] = [];
  const pauses: number[] = [];
  const left = [...answers];
  let now = 1000;
  await new Promise<void>((done) => {
    const world: World = {
      now: () => now,
      random: () => 0,
      wait: (milliseconds) => {
        pauses.push(milliseconds);
        now += milliseconds;
        return Promise.resolve();
      },
      fetch: () => {
        const next = left.shift();
        if (!next) {
          following.stop();
          done();
          return new Promise<Response>(() => undefined);
        }
        return next instanceof Error ? Promise.reject(next) : Promise.resolve(next);
      },
    };
    const following = follow(
      '/overview',
      {
        onView: (each) => views.push(each),
        onState: (state) => {
          states.push(state);
          if (state.kind === 'refused') done();
        },
      },
      world,
    );
  });
  return { views, states, kinds: states.map((state) => state.kind), pauses };
}

describe('a followed view', () => {
  it('is live with its first view, and shows each', async () => {
    const { views, kinds } = await followed([stream(view(1) + view(2))]);
    expect(views).toEqual([1, 2]);
    expect(kinds).toEqual(['opening', 'live']);
  });

  it('opens a stream that has ended anew without saying that it is lost', async () => {
    const { kinds, pauses } = await followed([stream(view(1)), stream(view(2))]);
    expect(kinds).toEqual(['opening', 'live', 'live']);
    expect(Math.max(...pauses)).toBeLessThan(1000);
  });

  it('says since when it is lost, not when it last tried', async () => {
    const { states } = await followed([stream(view(1)), new Error('net'), new Error('net')]);
    const lost = states.filter((state) => state.kind === 'lost');
    expect(lost.map((state) => state.since)).toEqual([1000, 1000]);
  });

  it('comes back by itself, and begins to count anew', async () => {
    const { kinds, pauses } = await followed([
      new Error('net'),
      new Error('net'),
      stream(view(1)),
      new Error('net'),
    ]);
    expect(kinds).toEqual(['opening', 'lost', 'lost', 'live', 'lost']);
    expect(pauses).toEqual([1000, 2000, 300, 1000]);
  });

  it.each([503, 429])(
    'tells a server that cannot just now (%d) from a lost connection',
    async (status) => {
      const { states } = await followed([new Response('{"error":"no"}', { status })]);
      expect(states.at(-1)).toMatchObject({ kind: 'waiting', words: 'no' });
    },
  );

  it('opens one anew that has lived long enough', async () => {
    const { kinds, pauses } = await followed([stream(view(1) + end(200)), stream(view(2))]);
    expect(kinds).toEqual(['opening', 'live', 'live']);
    expect(Math.max(...pauses)).toBeLessThan(1000);
  });

  it('is over when its last event says that a right is gone', async () => {
    const { states } = await followed([stream(view(1) + end(401)), stream(view(2))]);
    expect(states.at(-1)).toMatchObject({
      kind: 'refused',
      refusal: { status: 401, message: 'because' },
    });
  });

  it('waits when its last event says that another leads', async () => {
    const { kinds } = await followed([stream(view(1) + end(503)), stream(view(2))]);
    expect(kinds).toEqual(['opening', 'live', 'waiting', 'live']);
  });

  it.each([400, 401, 403, 404])('does not try again what is refused with %d', async (status) => {
    const { states } = await followed([
      new Response('{"error":"because"}', { status }),
      stream(view(1)),
    ]);
    expect(states.at(-1)).toMatchObject({
      kind: 'refused',
      refusal: { status, message: 'because' },
    });
  });

  it.each([500, 502])('tries again what failed with %d', async (status) => {
    const { kinds } = await followed([new Response('', { status })]);
    expect(kinds).toEqual(['opening', 'lost']);
  });

  it('waits between streams that end before they say anything', async () => {
    const { pauses } = await followed([stream(''), stream(''), stream('')]);
    expect(pauses).toEqual([1000, 2000, 4000]);
  });
});

it('waits twice as long each time, up to half a minute, and never all at once', () => {
  expect([1, 2, 3, 4, 5, 6, 60].map((failures) => backoff(failures, 0))).toEqual([
    1, 2, 4, 8, 16, 30, 30,
  ]);
  expect(backoff(6, 1)).toBe(24);
});
