import { bestWord, type SweepLine } from '../read/sweep.ts';
import { measured } from '../shared.ts';
import { Unknown } from './Unknown.tsx';

/** The best objective of a search so far, and what it is. */
export function Best({ of: { best, metric, goal } }: { of: SweepLine }) {
  if (!best) return <Unknown why="no trial has succeeded yet" />;
  return (
    <>
      <b>{measured(best.value)}</b>
      {metric && (
        <div className="sub">
          {metric}, {bestWord(goal)}
        </div>
      )}
    </>
  );
}
