import { describe, expect, it } from 'vitest';

import { mostOf, quotaParts, quotaWords } from '../../src/format/quota.ts';

const lender = { quota: 8, limit: null, held: 2, borrowed: 0 };
const borrower = { quota: 4, limit: 12, held: 7, borrowed: 3 };

describe('bars of projects', () => {
  it('go as far as the largest of what is held, promised and allowed', () => {
    expect(mostOf([lender, borrower])).toBe(12);
    expect(mostOf([lender])).toBe(8);
    expect(mostOf([])).toBe(1);
  });

  it('show what is held up to the quota, and above it what is borrowed', () => {
    expect(quotaParts(borrower, 16)).toEqual({ limit: 75, own: 25, held: 43.75, quota: 25 });
  });

  it('have room to the end where there is no limit', () => {
    expect(quotaParts(lender, 16).limit).toBe(100);
  });

  it('end at the right where more is held than they show', () => {
    expect(quotaParts({ ...borrower, held: 40, borrowed: 36 }, 16).held).toBe(100);
  });

  it('say the same in words', () => {
    expect(quotaWords(borrower)).toBe('7 held, quota 4, limit 12');
    expect(quotaWords(lender)).toBe('2 held, quota 8, no limit');
  });
});
