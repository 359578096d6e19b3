import type { SweepLine } from '../read/sweep.ts';
import { TRIALS, trialWords } from '../shared.ts';

/** The trials of a search by their state. */
export function TrialStrip({ counts }: Pick<SweepLine, 'counts'>) {
  const words = trialWords(counts);
  return (
    <>
      <div className="strip" aria-hidden="true" title={words}>
        {TRIALS.filter(([name]) => counts[name]).map(([name, state]) => (
          <div key={name} data-state={state} style={{ flex: counts[name] }} />
        ))}
      </div>
      <span className="sub">{words}</span>
    </>
  );
}
