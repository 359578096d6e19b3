import { describe, expect, it } from 'vitest';

import { duration } from '../../src/format/duration.ts';

const plain = (seconds: number) => duration(seconds).replaceAll('\u00a0', ' ');

describe('a span of time', () => {
  it.each([
    [0, '0 s'],
    [0.9, '0 s'],
    [38, '38 s'],
    [60, '1 min'],
    [162, '2 min 42 s'],
    [605, '10 min'],
    [659, '10 min'],
    [3600, '1 h'],
    [7800, '2 h 10 min'],
    [32_640, '9 h 04 min'],
    [86_400, '1 d'],
    [86_400 + 9 * 3600 + 59, '1 d 09 h'],
  ])('%d s is %s', (seconds, words) => {
    expect(plain(seconds)).toBe(words);
  });

  it('is never negative, since clocks differ', () => {
    expect(plain(-5)).toBe('0 s');
  });
});
