import { expect, it } from 'vitest';

import { share } from '../../src/api/share.ts';

const copy = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T;
const VIEW = {
  at: 1,
  nodes: [
    { name: 'a', labels: { zone: 'x' } },
    { name: 'b', labels: {} },
  ],
  empty: null,
};

it('is what was there before where nothing changed', () => {
  expect(share(VIEW, copy(VIEW))).toBe(VIEW);
});

it('keeps the parts that did not change, and only these', () => {
  const next = copy(VIEW);
  next.nodes[1] = { name: 'c', labels: {} };
  const shared = share(VIEW, next);
  expect(shared).toEqual(next);
  expect(shared.nodes[0]).toBe(VIEW.nodes[0]);
  expect(shared.nodes[1]).not.toBe(VIEW.nodes[1]);
});

it('takes a list that became longer or shorter as another', () => {
  expect(share([1, 2], [1])).toEqual([1]);
  expect(share([1], [1, 2])).toEqual([1, 2]);
});

it('tells a field that went from one that is null', () => {
  expect(share({ a: null, b: 1 }, { b: 1 })).toEqual({ b: 1 });
  expect(share({ a: 1 }, { a: null })).toEqual({ a: null });
});

it('keeps names that a record has anyway, such as those of labels', () => {
  const hostile = JSON.parse('{"__proto__": "x", "constructor": "y"}') as Record<string, string>;
  expect(Object.entries(share({}, hostile))).toEqual(Object.entries(hostile));
});
