import type { ReactNode } from 'react';

/** What nobody knows: a dash, and why on pointing at it. Never a zero. */
export function Unknown({ why }: { why: string }) {
  return (
    <span title={why}>
      <span aria-hidden="true">–</span>
      <span className="vh">not known: {why}</span>
    </span>
  );
}

/** A value, or the dash. */
export function Known<T>({
  value,
  why,
  children,
}: {
  value: T | null;
  why: string;
  children: (value: T) => ReactNode;
}) {
  return value === null ? <Unknown why={why} /> : children(value);
}

/** There is none of it, which is known. */
export function None() {
  return (
    <span className="quiet">
      <span aria-hidden="true">–</span>
      <span className="vh">none</span>
    </span>
  );
}

/** Why use is not known, as far as the page can tell. */
export const NO_USE =
  'no agent has told what it does: there is none on its node, it is silent, or it is not asked';
/** What comes with the accounts. */
export const NO_ACCOUNTS = 'accounts of who submitted and who consumed are not kept yet';
