import { expect, it } from 'vitest';

import { parallelAxes } from '../../src/parts/parallel.ts';

const TOP = [
  { trial: 1, value: 1, parameters: { lr: '1e-5', batch: '32', kind: 'a' } },
  { trial: 2, value: 3, parameters: { lr: '1e-1', batch: '64', kind: 'b' } },
  { trial: 3, value: 2, parameters: { lr: '1e-3', batch: '48' } },
];
const axis = (name: string) => parallelAxes(TOP, 'loss').find((each) => each.name === name);

it('has the objective last', () => {
  expect(parallelAxes(TOP, 'loss').map((each) => each.name)).toEqual([
    'lr',
    'batch',
    'kind',
    'loss',
  ]);
});

it('places numbers between the least and the most', () => {
  expect(axis('batch')?.at).toEqual([0, 1, 0.5]);
});

it('places what spans powers of ten by its power', () => {
  expect(axis('lr')?.at.map((at) => Math.round((at ?? 0) * 100))).toEqual([0, 100, 50]);
});

it('places words in their order, and leaves out what a trial does not have', () => {
  expect(axis('kind')?.at).toEqual([0, 1, null]);
});
