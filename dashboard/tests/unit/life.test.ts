import { expect, it } from 'vitest';

import { stretches } from '../../src/parts/life.ts';

const step = (at: number, kind: string) => ({ at, kind, words: kind, detail: '' });

it('lasts until the next step, the last one until the end', () => {
  const all = stretches([step(0, 'submitted'), step(10, 'waits'), step(40, 'runs')], 100);
  expect(all.map(({ seconds }) => seconds)).toEqual([10, 30, 60]);
});

it('lasts no longer once it has ended', () => {
  expect(
    stretches([step(0, 'runs'), step(50, 'ended')], 100).map(({ seconds }) => seconds),
  ).toEqual([50, 0]);
});

it('is never negative, since clocks differ', () => {
  expect(
    stretches([step(10, 'runs'), step(5, 'suspended')], 0).map(({ seconds }) => seconds),
  ).toEqual([0, 0]);
});

it('goes on running when it is said to be placed after its start', () => {
  const all = stretches([step(0, 'submitted'), step(2, 'runs'), step(5, 'placed')], 60);
  expect(all.map(({ state }) => state)).toEqual(['free-in-pieces', 'busy', 'busy']);
});

it('has a colour also for a kind that is not known yet', () => {
  expect(stretches([step(0, 'constructor')], 1)[0]?.state).toBe('free-in-pieces');
});
