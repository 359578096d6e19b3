import type { JobView } from '../api/views.ts';
import { PhaseWords } from './jobColumns.tsx';
import { NO_ACCOUNTS, Unknown } from './Unknown.tsx';

/** Short words about a job, in a row. */
export function Facts({ job }: { job: JobView }) {
  return (
    <p className="facts">
      <span className="pill">
        <PhaseWords row={job.row} />
      </span>
      {job.facts.map((fact) => (
        <span key={fact} className="pill" title={fact}>
          {fact}
        </span>
      ))}
      <span className="pill">
        submitted by <Unknown why={NO_ACCOUNTS} />
      </span>
    </p>
  );
}
