import { useNow } from '../api/clock.ts';
import { duration } from '../format/duration.ts';
import { clock, clockSeconds, exact, iso } from '../format/moment.ts';

/** How long ago, counting; the exact time on pointing at it. */
export function Age({ at, until }: { at: number; until?: number | null }) {
  const words = useNow((now) => duration((until ?? now) - at));
  return (
    <time dateTime={iso(at)} title={`since ${exact(at)}`}>
      {words}
    </time>
  );
}

/** A moment, as short as it can be said; all of it on pointing at it. */
export function Moment({ at, seconds = false }: { at: number; seconds?: boolean }) {
  const words = useNow((now) => (seconds ? clockSeconds(at, now) : clock(at, now)));
  return (
    <time dateTime={iso(at)} title={exact(at)}>
      {words}
    </time>
  );
}
