import { expect, it } from 'vitest';

import { nearest } from '../../src/parts/nearest.ts';

// 0 1 2
// 3 4 5
const PLACES = [0, 1].flatMap((y) => [0, 1, 2].map((x) => ({ x: x * 40, y: y * 30 })));
const from = (index: number, key: string) => nearest(key, PLACES[index] ?? { x: 0, y: 0 }, PLACES);

it('leads to the next box that way', () => {
  expect([
    from(0, 'ArrowRight'),
    from(1, 'ArrowDown'),
    from(4, 'ArrowUp'),
    from(5, 'ArrowLeft'),
  ]).toEqual([1, 4, 1, 4]);
});

it('leads nowhere beyond the last', () => {
  expect([from(2, 'ArrowRight'), from(3, 'ArrowDown'), from(0, 'a')]).toEqual([-1, -1, -1]);
});
