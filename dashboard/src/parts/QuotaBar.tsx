import type { ProjectRow } from '../api/views.ts';
import { gpus } from '../format/number.ts';

/** Held up to the quota, borrowed above it, grey up to the limit; the mark is the quota. */
export function QuotaBar({ row, most }: { row: ProjectRow; most: number }) {
  const scale = (count: number) => `${(100 * Math.min(count, most)) / (most || 1)}%`;
  const own = row.held - row.borrowed;
  return (
    <div
      className="quota"
      role="img"
      aria-label={`${gpus(row.held)} held, quota ${gpus(row.quota)}, ${
        row.limit === null ? 'no limit' : `limit ${gpus(row.limit)}`
      }`}
    >
      <span data-state="free" style={{ left: 0, width: scale(row.limit ?? most) }} />
      <span data-state="busy" style={{ left: 0, width: scale(own) }} />
      <span data-state="held" style={{ left: scale(own), width: scale(row.borrowed) }} />
      <span className="at" style={{ left: `min(${scale(row.quota)}, calc(100% - 2px))` }} />
    </div>
  );
}

/** How far the bars of some projects go. */
export function mostOf(rows: readonly ProjectRow[]): number {
  return Math.max(1, ...rows.flatMap((row) => [row.held, row.quota, row.limit ?? 0]));
}
