import { expect, it } from 'vitest';

import { clock, clockSeconds, exact } from '../../src/format/moment.ts';

const NOW = new Date(2026, 2, 12, 15, 14, 5).getTime() / 1000;

it('is the time alone where it was today', () => {
  expect(clock(NOW - 60, NOW)).toBe('15:13');
  expect(clockSeconds(NOW, NOW)).toBe('15:14:05');
});

it('has the day where it was not', () => {
  expect(clock(NOW - 86_400, NOW)).toBe('11 Mar 15:14');
});

it('says its zone when it is exact', () => {
  expect(exact(NOW)).toMatch(/^Thu,? 12 Mar 2026,? (at )?15:14:05 \S+/);
});
