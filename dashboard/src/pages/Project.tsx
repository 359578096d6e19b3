import { useView } from '../api/useView.ts';
import type { JobRow, ProjectView, QueueRow } from '../api/views.ts';
import { projectPath, refWord } from '../format/job.ts';
import { counted, gpus, gpuWords, percent } from '../format/number.ts';
import { mostOf } from '../format/quota.ts';
import { Card } from '../parts/Card.tsx';
import { ChartCard } from '../parts/ChartCard.tsx';
import { JOB_COLUMNS } from '../parts/jobColumns.tsx';
import { List } from '../parts/List.tsx';
import { Page } from '../parts/Page.tsx';
import { QuotaBar } from '../parts/QuotaBar.tsx';
import { Borrowed, Held } from '../parts/ProjectList.tsx';
import { QUEUE_COLUMNS } from '../parts/queueColumns.tsx';
import { ReasonList } from '../parts/ReasonList.tsx';
import { State } from '../parts/State.tsx';
import { Known, NO_ACCOUNTS, NO_USE, Unknown } from '../parts/Unknown.tsx';
import { Link } from '../router/Link.tsx';

const holderKey = (row: JobRow) => refWord(row.ref);
const waiterKey = (row: QueueRow) => refWord(row.ref);
const without = (key: string) => (column: { key: string }) => column.key !== key;

/** One project: its quota, its history, and its work. */
export function ProjectPage({ name }: { name: string }) {
  const { view, refusal } = useView<ProjectView>(projectPath(name));
  return (
    <Page
      title={name}
      crumb={
        <Link to="/projects" className="q">
          Projects
        </Link>
      }
      lead={view?.lead ?? null}
      refusal={refusal}
    >
      {view && <Parts view={view} />}
    </Page>
  );
}

function Parts({ view }: { view: ProjectView }) {
  const { row } = view;
  const of = encodeURIComponent(row.name);
  return (
    <>
      <Card
        title="What it holds"
        about="mark: quota; pale green: borrowed; grey: up to the limit"
        className={row.problem ? 'warn' : ''}
      >
        {row.problem && <p className="bad">{row.problem}</p>}
        <QuotaBar row={row} most={mostOf([row])} />
        <dl className="pairs">
          <dt>held, of the quota</dt>
          <dd>
            <Held row={row} /> GPUs
          </dd>
          <dt>borrowed</dt>
          <dd>
            <Borrowed row={row} />
          </dd>
          <dt>limit</dt>
          <dd>{row.limit === null ? 'none' : gpus(row.limit)}</dd>
          <dt>due by fair share</dt>
          <dd>{gpus(row.fairShare)}</dd>
          <dt>busy, of what it holds</dt>
          <dd>
            <Known value={row.busy} why={NO_USE}>
              {(busy) =>
                `${gpus(busy)}${row.held > 0 ? `, ${percent(Math.min(1, busy / row.held))}` : ''}`
              }
            </Known>
          </dd>
          <dt>held idle</dt>
          <dd>{gpus(row.idle)}</dd>
          <dt>consumed this month</dt>
          <dd>
            <Unknown why={NO_ACCOUNTS} />
          </dd>
          <dt>namespaces</dt>
          <dd>{row.namespaces.join(', ') || '–'}</dd>
        </dl>
      </Card>
      <ChartCard project={row.name} />
      <Card
        title="Who holds its GPUs"
        about={counted(row.running, 'workload')}
        more={<Link to={`/jobs?project=${of}`}>Jobs</Link>}
      >
        {view.holding.length > 0 ? (
          <List
            label="who holds its GPUs"
            columns={JOB_COLUMNS.filter(without('project'))}
            rows={view.holding}
            keyOf={holderKey}
          />
        ) : (
          <State words={row.running > 0 ? 'Nobody whom you may see.' : 'Nobody.'} />
        )}
      </Card>
      {view.reasons.length > 0 && (
        <Card title="Why its jobs wait">
          <ReasonList rows={view.reasons} />
        </Card>
      )}
      {row.waiting > 0 && (
        <Card
          title="Who waits"
          about={`${counted(row.waiting, 'workload')}${row.pending > 0 ? ` for ${gpuWords(row.pending)}` : ''}`}
          more={<Link to={`/queue?project=${of}`}>Queue</Link>}
        >
          {view.waiting.length > 0 ? (
            <List
              label="who waits"
              columns={QUEUE_COLUMNS.filter(without('project'))}
              rows={view.waiting}
              keyOf={waiterKey}
            />
          ) : (
            <State words="Nobody whom you may see." />
          )}
        </Card>
      )}
    </>
  );
}
