import { expect, it } from 'vitest';

import { csv } from '../../src/format/csv.ts';

it('quotes what holds commas, quotes and lines', () => {
  expect(csv(['a', 'b'], [['1,2', 'say "hi"\nthere']])).toBe(
    'a,b\r\n"1,2","say ""hi""\nthere"\r\n',
  );
});

it('leaves out what is not known, and keeps numbers as they are', () => {
  expect(csv(['a', 'b'], [[null, -0.5]])).toBe('a,b\r\n,-0.5\r\n');
});

it.each(['=1+1', '+1', '-1', '@x', '\tx', '\rx'])('has %j be text in a spreadsheet', (text) => {
  const [, row] = csv(['a'], [[text]]).split('\r\n');
  expect(row?.replace(/^"/, '')).toMatch(/^'/);
});
