import { expect, it } from 'vitest';

import { roundStep, ticksOf } from '../../src/parts/axes.ts';

it.each([
  [3600, 600, '10 min'],
  [86_400, 4 * 3600, '4 h'],
  [7 * 86_400, 2 * 86_400, '2 d'],
])('has a tick of a chart over %d s each %d s', (span, step, words) => {
  const ticks = ticksOf(span);
  expect(ticks.step).toBe(step);
  expect(ticks.words(step).replaceAll('\u00a0', ' ')).toBe(words);
});

it.each([
  [8.3, 10],
  [0.21, 0.25],
  [1, 1],
  [0, 1],
  [31, 50],
])('rounds steps of %d up to %d', (about, step) => {
  expect(roundStep(about)).toBe(step);
});
