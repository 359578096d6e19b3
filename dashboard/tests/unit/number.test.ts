import { describe, expect, it } from 'vitest';

import {
  counted,
  gpus,
  gpuWords,
  hours,
  measured,
  memory,
  parameter,
  percent,
} from '../../src/format/number.ts';

const plain = (words: string) => words.replaceAll('\u00a0', ' ');

describe('GPUs', () => {
  it.each([
    [31.4, '31.4'],
    [0.25, '0.25'],
    [19, '19'],
    [1000, '1,000'],
    [0.1 + 0.2, '0.3'],
    [-0.0001, '0'],
  ])('%d is %s', (count, words) => {
    expect(gpus(count)).toBe(words);
  });

  it('are one up to one, and more above', () => {
    expect([0.5, 1, 1.5].map((count) => plain(gpuWords(count)))).toEqual([
      '0.5 GPU',
      '1 GPU',
      '1.5 GPUs',
    ]);
  });
});

describe('a percentage', () => {
  it.each([
    [0, '0 %'],
    [0.284, '28 %'],
    [0.001, '< 1 %'],
    [0.999, '99 %'],
    [1, '100 %'],
  ])('of %d is %s', (ratio, words) => {
    expect(plain(percent(ratio))).toBe(words);
  });
});

it('is counted in the singular and in the plural', () => {
  expect([
    counted(1, 'node'),
    counted(2, 'node'),
    counted(0, 'job'),
    counted(3, 'more', 'more'),
  ]).toEqual(['1 node', '2 nodes', '0 jobs', '3 more']);
});

it('says GPU-hours finer the fewer they are, and nothing only of nothing', () => {
  expect([0, 0.001, 0.034, 0.4, 18.12].map((many) => plain(hours(many)))).toEqual([
    '0',
    '< 0.01',
    '0.03',
    '0.4',
    '18.1',
  ]);
});

it('says parameters with the digits that count', () => {
  const all = ['0.0063311837809809385', '1.5e-7', '128', '123456', 'adam', '', '1e400'];
  expect(all.map(parameter)).toEqual(['0.006331', '1.5e-7', '128', '123456', 'adam', '', '1e400']);
});

it('says memory in the unit that reads best', () => {
  expect([512, 25_600, 40_960, 2_097_152].map((mib) => plain(memory(mib)))).toEqual([
    '512 MiB',
    '25 GiB',
    '40 GiB',
    '2 TiB',
  ]);
});

it('says four digits of what was measured', () => {
  expect(measured(0.231_412)).toBe('0.2314');
});
