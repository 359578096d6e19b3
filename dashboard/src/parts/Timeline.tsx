import { useNow } from '../api/clock.ts';
import type { JobView, Step } from '../api/views.ts';
import { duration } from '../format/duration.ts';
import type { Column } from './column.ts';
import { type Stretch, stretches } from './life.ts';
import { List } from './List.tsx';
import { State } from './State.tsx';
import { Moment } from './Time.tsx';
import { Told } from './Told.tsx';

const keyOf = ({ step }: Stretch) => `${step.at} ${step.kind} ${step.words}`;
const COLUMNS: readonly Column<Stretch>[] = [
  {
    key: 'when',
    head: 'when',
    width: '128px',
    narrow: 'number',
    cell: ({ step }) => <Moment at={step.at} seconds />,
  },
  {
    key: 'what',
    head: 'what',
    width: 'minmax(0, 1fr)',
    narrow: 'name',
    cell: ({ step }) => <Words step={step} />,
  },
  {
    key: 'lasted',
    head: 'lasted',
    width: '100px',
    end: true,
    narrow: 'sentence',
    cell: ({ seconds, step }) =>
      step.kind !== 'ended' && <span className="sub">{duration(seconds)}</span>,
  },
];

function Words({ step }: { step: Step }) {
  return (
    <>
      {step.words}
      {step.detail && (
        <small className="beside">
          {' '}
          <Told text={step.detail} />
        </small>
      )}
    </>
  );
}

/** A life from submission on: a strip of its stretches, and its steps in the planner's words. */
export function Timeline({ job }: { job: JobView }) {
  const now = useNow((at) => Math.floor(at));
  const all = stretches(job.steps, job.row.ended ?? now);
  const shown = all.filter((each) => each.seconds > 1);
  if (all.length === 0) return <State words="Nothing is known of its life so far." />;
  const whole = shown.reduce((sum, each) => sum + each.seconds, 0);
  // A stretch of some seconds between hours is to be seen, too.
  const flex = (each: Stretch) => Math.max(each.seconds, whole / 120);
  return (
    <>
      <div className="strip low" aria-hidden="true">
        {shown.map((each) => (
          <div
            key={keyOf(each)}
            data-state={each.state}
            style={{ flex: flex(each) }}
            title={`${each.step.words} ${each.step.detail}, ${duration(each.seconds)}`}
          />
        ))}
      </div>
      <div className="timeline" aria-hidden="true">
        {shown.map((each) => (
          <span key={keyOf(each)} style={{ flex: `${flex(each)} 0 0` }}>
            {flex(each) > whole / 9 && `${short(each)} ${duration(each.seconds)}`}
          </span>
        ))}
      </div>
      <div className="steps">
        <List label="steps of its life" columns={COLUMNS} rows={all} keyOf={keyOf} />
      </div>
    </>
  );
}

/** The first word or two: what comes before a colon or a comma. */
function short({ step, state }: Stretch): string {
  return state === 'busy' ? 'running' : (/^[^:,(]+/.exec(step.words)?.[0] ?? step.words).trim();
}
