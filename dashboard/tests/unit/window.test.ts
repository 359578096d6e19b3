import { describe, expect, it } from 'vitest';

import { inSight, LIMIT, offsetFor } from '../../src/parts/window.ts';

describe('a long list', () => {
  it('draws what is in sight and little more', () => {
    const { first, last } = inSight(-56 * 1000, 900, 56, 10_000);
    expect(first).toBeLessThanOrEqual(1000);
    expect(last).toBeGreaterThanOrEqual(1017);
    expect(last - first).toBeLessThan(40);
  });

  it('ends where its rows end, also when it became shorter than where one had scrolled to', () => {
    expect(inSight(0, 900, 56, 3)).toEqual({ first: 0, last: 3 });
    expect(inSight(-56_000, 900, 56, 10)).toEqual({ first: 10, last: 10 });
    expect(inSight(0, 900, 56, 0)).toEqual({ first: 0, last: 0 });
  });

  it('asks for what is in sight wherever that is, and not at each step', () => {
    let offset = 0;
    let questions = 0;
    for (let first = 0; first < 9_960; first += 7) {
      const span = { first, last: first + 40 };
      const next = offsetFor(span, offset);
      if (next !== offset) questions += 1;
      offset = next;
      expect(offset).toBeLessThanOrEqual(span.first);
      expect(offset + LIMIT).toBeGreaterThanOrEqual(span.last);
    }
    expect(questions).toBeLessThan(120);
  });
});
