import { useList } from '../api/useList.ts';
import type { JobRow, JobsView } from '../api/views.ts';
import { refWord } from '../format/job.ts';
import { count } from '../format/number.ts';
import { Card } from '../parts/Card.tsx';
import { Choice } from '../parts/Choice.tsx';
import { Csv } from '../parts/Csv.tsx';
import { JOB_COLUMNS } from '../parts/jobColumns.tsx';
import { NoWork } from '../parts/Nothing.tsx';
import { Page } from '../parts/Page.tsx';
import { VirtualList } from '../parts/VirtualList.tsx';
import { WorkFilters } from '../parts/WorkFilters.tsx';
import { pick } from '../router/pick.ts';
import { useQuery } from '../router/query.ts';

const FILTERS = ['q', 'project', 'phase', 'reason', 'type', 'advice', 'idle'];
const CHOSEN = ['reason', 'type', 'advice', 'idle'];
const PHASES = ['Pending', 'Running', 'Suspended', 'Succeeded', 'Failed'];
const keyOf = (row: JobRow) => refWord(row.ref);

/** All work that asks for GPUs, whatever its kind. */
export function JobsPage() {
  const [query, set] = useQuery();
  const { view, refusal, of, onOffset, all } = useList<JobRow, JobsView>(
    '/jobs',
    pick(query, [...FILTERS, 'sort']),
  );
  return (
    <Page title="Jobs" lead={view?.lead ?? null} refusal={refusal}>
      {view && (
        <Card
          title="Jobs"
          about={`${count(view.total)} shown`}
          more={<Csv name="jobs" columns={JOB_COLUMNS} rows={all} />}
        >
          <WorkFilters query={query} set={set} projects={view.projects}>
            <Choice
              label=""
              value={query.get('phase') ?? ''}
              choices={[
                ['', 'all'],
                ...PHASES.filter((phase) => view.phases[phase] || phase === query.get('phase')).map(
                  (phase) => [phase, `${phase} ${count(view.phases[phase] ?? 0)}`] as const,
                ),
              ]}
              onChoose={(phase) => set({ phase })}
            />
            {CHOSEN.filter((name) => query.get(name)).map((name) => (
              <button key={name} type="button" onClick={() => set({ [name]: null })}>
                {name === 'idle' ? 'held idle' : query.get(name)} ×
                <span className="vh">: show all</span>
              </button>
            ))}
          </WorkFilters>
          {view.total === 0 ? (
            <NoWork filtered={pick(query, FILTERS) !== ''} />
          ) : (
            <VirtualList
              label="jobs"
              columns={JOB_COLUMNS}
              rows={view.rows}
              keyOf={keyOf}
              total={view.total}
              offset={view.offset}
              question={of}
              onOffset={onOffset}
              sort={query.get('sort') ?? ''}
              onSort={(sort) => set({ sort })}
            />
          )}
        </Card>
      )}
    </Page>
  );
}
