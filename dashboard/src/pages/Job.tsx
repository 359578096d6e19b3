import { useView } from '../api/useView.ts';
import type { JobView, WorkRef } from '../api/views.ts';
import { jobPath } from '../format/job.ts';
import { Actions } from '../parts/Actions.tsx';
import { Advice } from '../parts/Advice.tsx';
import { BesideCard } from '../parts/BesideCard.tsx';
import { Card } from '../parts/Card.tsx';
import { ComparePicker } from '../parts/ComparePicker.tsx';
import { Command } from '../parts/Copy.tsx';
import { CurveCards } from '../parts/CurveCards.tsx';
import { Facts } from '../parts/Facts.tsx';
import { LogCard } from '../parts/LogCard.tsx';
import { Page } from '../parts/Page.tsx';
import { PlacedCard } from '../parts/PlacedCard.tsx';
import { RanksCard } from '../parts/RanksCard.tsx';
import { Timeline } from '../parts/Timeline.tsx';
import { UsedCard } from '../parts/UsedCard.tsx';
import { Link } from '../router/Link.tsx';

/** One workload: its life, what it does with its GPUs, and what to change. */
export function JobPage({ of }: { of: WorkRef }) {
  const { view, refusal } = useView<JobView>(jobPath(of));
  return (
    <Page
      title={of.name}
      crumb={
        <>
          <Link to={`/jobs?q=${encodeURIComponent(of.namespace)}`} className="q">
            {of.namespace}
          </Link>
          {' / '}
          {of.kind}
        </>
      }
      lead={view?.lead ?? null}
      refusal={refusal}
      names={false}
    >
      {view && <Parts job={view} of={of} />}
    </Page>
  );
}

function Parts({ job, of }: { job: JobView; of: WorkRef }) {
  return (
    <>
      <Facts job={job} />
      <Actions job={job} />
      <Card
        title={job.row.ended === null ? 'From submission until now' : 'From submission to its end'}
        about={job.stepsNote}
      >
        <Timeline job={job} />
      </Card>
      {job.advice.map((advice) => (
        <Advice key={advice.rule} advice={advice} />
      ))}
      <CurveCards job={job} />
      <RanksCard job={job} />
      {(job.used ?? job.beside.length > 0) && (
        <div className="two">
          {job.used && <UsedCard used={job.used} />}
          {job.beside.map((beside) => (
            <BesideCard
              key={`${beside.node} ${beside.device.index}`}
              beside={beside}
              own={job.row.ref}
            />
          ))}
        </div>
      )}
      {job.placed.length > 0 && <PlacedCard job={job} />}
      {job.placed.length > 0 && <LogCard namespace={of.namespace} placed={job.placed} />}
      <Card title="By kubectl" about="the same, and what this page cannot do">
        {Object.entries(job.commands).map(([what, line]) => (
          <Command key={what} about={what} line={line} />
        ))}
      </Card>
      <ComparePicker of={job.row.ref} />
    </>
  );
}
