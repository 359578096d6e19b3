import type { SweepRow } from '../api/views.ts';
import { TRIALS, trialWords } from './trials.ts';

/** The trials of a search by their state, of all that it may have. */
export function TrialStrip({ row }: { row: SweepRow }) {
  const known = TRIALS.reduce((sum, [name]) => sum + (row.counts[name] ?? 0), 0);
  return (
    <>
      <div className="strip thin" aria-hidden="true" title={trialWords(row.counts)}>
        {TRIALS.filter(([name]) => row.counts[name]).map(([name, state]) => (
          <div key={name} data-state={state} style={{ flex: row.counts[name] }} />
        ))}
        {row.trials > known && <div data-state="free" style={{ flex: row.trials - known }} />}
      </div>
      <small className="one-line">{trialWords(row.counts)}</small>
    </>
  );
}
