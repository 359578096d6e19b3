import { expect, it } from 'vitest';

import { clock } from '../../src/format/moment.ts';
import { told } from '../../src/format/told.ts';

const AT = Date.parse('2026-11-28T19:49:00Z') / 1000;

it('has moments in the reader’s own zone', () => {
  const words = told('others give way from 2026-11-28T19:49:00Z on', AT);
  expect(words).toBe(`others give way from ${clock(AT, AT)} on`);
});

it('says the day where that is not today', () => {
  const words = told('due at 2026-11-28T19:49:00Z', AT + 2 * 86_400);
  expect(words).toBe(`due at ${clock(AT, AT + 2 * 86_400)}`);
  expect(words).toMatch(/Nov/);
});

it('leaves the rest, and what is no moment, as it is', () => {
  const text = 'needs 1 GPU; job-2026-11-28 holds 2026-99-99T99:99:99Z';
  expect(told(text, AT)).toBe(text);
});
