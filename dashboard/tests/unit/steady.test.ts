import { describe, expect, it } from 'vitest';

import { steady } from '../../src/parts/steady.ts';

const same = (row: string) => row;
const refreshed = (before: string, next: string) =>
  steady(Array.from(before), Array.from(next), same);

describe('rows that refresh', () => {
  it.each([
    ['abc', 'abc', 'abc'],
    ['abc', 'cba', 'abc'],
    ['abc', 'ac', 'ac'],
    ['abc', 'axbc', 'axbc'],
    ['abc', 'xabc', 'xabc'],
    ['abc', 'abcxy', 'abcxy'],
    ['abc', 'cxba', 'abcx'],
    ['', 'ab', 'ab'],
    ['ab', '', ''],
  ])('%s, then %s from the server, are shown as %s', (before, next, shown) => {
    expect(refreshed(before, next).rows.join('')).toBe(shown);
  });

  it('tells those that are new', () => {
    expect([...refreshed('ab', 'axb').fresh]).toEqual(['x']);
  });

  it('tells when the server would have them in another order', () => {
    expect([refreshed('abc', 'abxc').moved, refreshed('abc', 'bac').moved]).toEqual([false, true]);
  });
});
