import type { ReactNode } from 'react';

/** What nobody knows, or what there is none of: a dash, and why on pointing at it. Never a zero. */
export function Unknown({ why }: { why: string }) {
  return (
    <span title={why}>
      <span aria-hidden="true">–</span>
      <span className="hidden">{why}</span>
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
  return <>{value === null || value === '' ? <Unknown why={why} /> : children(value)}</>;
}
