import { useView } from '../api/useView.ts';
import type { JobView, Lead, WorkRef } from '../api/views.ts';
import { jobPath, parseRef, refWord } from '../format/job.ts';
import { Card } from '../parts/Card.tsx';
import { ComparedList } from '../parts/ComparedList.tsx';
import { ComparePicker } from '../parts/ComparePicker.tsx';
import { CurveCards } from '../parts/CurveCards.tsx';
import { Page } from '../parts/Page.tsx';
import { State } from '../parts/State.tsx';
import { Link } from '../router/Link.tsx';
import { useQuery } from '../router/query.ts';

const text = (words: string, to = '') => ({ text: words, to });

/** Two jobs side by side. */
export function Compare() {
  const [query] = useQuery();
  const a = parseRef(query.get('a') ?? '');
  const b = parseRef(query.get('b') ?? '');
  const one = useView<JobView>(a ? jobPath(a) : '');
  const other = useView<JobView>(b ? jobPath(b) : '');
  return (
    <Page
      title="Two jobs"
      crumb={
        <Link to="/jobs" className="q">
          Jobs
        </Link>
      }
      lead={sentence(a, b)}
      refusal={null}
    >
      {a && !b && <ComparePicker of={a} />}
      {(one.refusal ?? other.refusal) && (
        <Card title="Not there">
          <State words={(one.refusal ?? other.refusal)?.message ?? ''} />
        </Card>
      )}
      {one.view && other.view && (
        <>
          <Card title="What tells them apart">
            <ComparedList a={one.view} b={other.view} />
          </Card>
          {[one.view, other.view].map((job) => (
            <CurveCards key={refWord(job.row.ref)} job={job} named />
          ))}
        </>
      )}
    </Page>
  );
}

/** The page is of two views, each with a sentence of its own: this one names them. */
function sentence(a: WorkRef | null, b: WorkRef | null): Lead {
  if (!a) return { first: [text('No job is named in the address.')], then: [] };
  if (!b) return { first: [text(a.name, jobPath(a)), text(' beside which other?')], then: [] };
  return {
    first: [text(a.name, jobPath(a)), text(' beside '), text(b.name, jobPath(b)), text('.')],
    then: [],
  };
}
