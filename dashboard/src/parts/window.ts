export interface Span {
  readonly first: number;
  readonly last: number;
}

const AROUND = 8;
export const PAGE = 100;
export const LIMIT = 2 * PAGE;

/** Which rows of a list are in sight, and a few around them; `last` is not one of them. */
export function inSight(top: number, height: number, row: number, total: number): Span {
  const first = Math.max(0, Math.floor(-top / row) - AROUND);
  const last = Math.min(total, Math.ceil((height - top) / row) + AROUND);
  return { first: Math.min(first, Math.max(0, last)), last: Math.max(0, last) };
}

/**
 * The offset to ask for, in whole pages, so that what is in sight is within it with some room; the
 * one there is stays while it does.
 */
export function offsetFor(span: Span, now: number): number {
  if (span.first >= now && span.last <= now + LIMIT) return now;
  const middle = (span.first + span.last) / 2;
  return Math.max(0, Math.round((middle - PAGE) / PAGE) * PAGE);
}
