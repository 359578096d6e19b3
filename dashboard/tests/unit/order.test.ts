import { expect, it } from 'vitest';

import type { Column } from '../../src/parts/column.ts';
import { nextSort, sorted } from '../../src/parts/order.ts';

interface Row {
  name: string;
  held: number | null;
}
const column = (sort: 'name' | 'held'): Column<Row> => ({
  key: sort,
  head: sort,
  width: '1fr',
  sort,
  cell: () => null,
  file: (row) => row[sort],
});
const COLUMNS = [column('name'), column('held')];
const ROWS: Row[] = [
  { name: 'b10', held: 2 },
  { name: 'b9', held: null },
  { name: 'a', held: 10 },
];
const names = (sort: string) => sorted(ROWS, COLUMNS, sort).map((row) => row.name);

it('sorts numbers as numbers, and names as people do', () => {
  expect(names('held')).toEqual(['b10', 'a', 'b9']);
  expect(names('name')).toEqual(['a', 'b9', 'b10']);
});

it('has what is not known last, whichever way round', () => {
  expect(names('-held').at(-1)).toBe('b9');
  expect(names('held').at(-1)).toBe('b9');
});

it('leaves the order where nothing is asked for, or what there is not', () => {
  expect(names('')).toEqual(['b10', 'b9', 'a']);
  expect(names('constructor')).toEqual(['b10', 'b9', 'a']);
});

it('goes from the largest to the least to none', () => {
  expect(nextSort('', 'held')).toBe('-held');
  expect(nextSort('-held', 'held')).toBe('held');
  expect(nextSort('held', 'held')).toBe('');
  expect(nextSort('-name', 'held')).toBe('-held');
});

it('goes from the least to none where it is sorted one way alone', () => {
  expect([nextSort('', 'name', true), nextSort('name', 'name', true)]).toEqual(['name', '']);
});
