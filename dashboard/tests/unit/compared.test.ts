import { expect, it } from 'vitest';

import type { JobView } from '../../src/api/views.ts';
import { spent } from '../../src/parts/compared.ts';

const step = (at: number, kind: string) => ({ at, kind, words: kind, detail: '' });
const job = (kinds: [number, string][], row: Partial<JobView['row']> = {}) =>
  ({
    steps: kinds.map(([at, kind]) => step(at, kind)),
    row: { ended: null, sweep: false, ...row },
  }) as unknown as JobView;

it('ran until now, also when it was said to be placed after its start', () => {
  const one = job([
    [0, 'submitted'],
    [10, 'runs'],
    [12, 'placed'],
  ]);
  expect([spent(one, 'free-in-pieces', 100), spent(one, 'busy', 100)]).toEqual([10, 90]);
});

it('is not known of what has ended and whose start is not known any more', () => {
  const one = job(
    [
      [0, 'submitted'],
      [50, 'ended'],
    ],
    { ended: 50 },
  );
  expect([spent(one, 'free-in-pieces', 100), spent(one, 'busy', 100)]).toEqual([null, null]);
});

it('is not known of a search, whose trials have lives of their own', () => {
  expect(
    spent(
      job(
        [
          [0, 'submitted'],
          [10, 'runs'],
        ],
        { sweep: true },
      ),
      'busy',
      100,
    ),
  ).toBe(null);
});
