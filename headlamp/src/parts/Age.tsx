import { duration, exact, iso } from '../shared.ts';
import { Unknown } from './Unknown.tsx';
import { useNow } from './useNow.ts';

/** How long ago, counting; the exact time on pointing at it. */
export function Age({ at }: { at: number | null }) {
  const now = useNow();
  if (at === null) return <Unknown why="its time is not known" />;
  return (
    <time dateTime={iso(at)} title={`since ${exact(at)}`}>
      {duration(now - at)}
    </time>
  );
}
