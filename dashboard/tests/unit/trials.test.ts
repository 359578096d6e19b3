import { describe, expect, it } from 'vitest';

import { bestSoFar } from '../../src/parts/trials.ts';

const ranked = (trial: number, value: number) => ({ trial, value, parameters: {} });

describe('the best so far', () => {
  const top = [ranked(48, 0.1), ranked(61, 0.2), ranked(12, 0.3), ranked(29, 0.4), ranked(5, 0.5)];

  it('has a point where a trial was better than all before it', () => {
    expect(bestSoFar(top, 'minimize').map((each) => each.trial)).toEqual([5, 12, 48]);
  });

  it('goes up where the most is wanted', () => {
    expect(bestSoFar(top, 'maximize').map((each) => each.trial)).toEqual([5]);
    expect(bestSoFar([ranked(1, 2), ranked(0, 1)], 'maximize')).toEqual([
      { trial: 0, value: 1 },
      { trial: 1, value: 2 },
    ]);
  });

  it('is nothing of no trials', () => {
    expect(bestSoFar([], 'minimize')).toEqual([]);
  });
});
