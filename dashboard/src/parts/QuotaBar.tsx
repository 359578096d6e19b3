import type { Bounds } from '../format/quota.ts';
import { quotaParts, quotaWords } from '../format/quota.ts';

/** Held up to the quota, borrowed above it, grey up to the limit; the mark is the quota. */
export function QuotaBar({ row, most }: { row: Bounds; most: number }) {
  const { limit, own, held, quota } = quotaParts(row, most);
  return (
    <div className="quota" role="img" aria-label={quotaWords(row)}>
      <span data-state="free" style={{ left: 0, width: `${limit}%` }} />
      <span data-state="busy" style={{ left: 0, width: `${own}%` }} />
      <span data-state="held" style={{ left: `${own}%`, width: `${held - own}%` }} />
      <span className="at" style={{ left: `min(${quota}%, calc(100% - 2px))` }} />
    </div>
  );
}
