import { useList } from '../api/useList.ts';
import type { SweepRow, Sweeps } from '../api/views.ts';
import { refWord } from '../format/job.ts';
import { Card } from '../parts/Card.tsx';
import { Csv } from '../parts/Csv.tsx';
import { NoSweeps } from '../parts/Nothing.tsx';
import { Page } from '../parts/Page.tsx';
import { Search } from '../parts/Search.tsx';
import { SWEEP_COLUMNS } from '../parts/sweepColumns.tsx';
import { VirtualList } from '../parts/VirtualList.tsx';
import { pick } from '../router/pick.ts';
import { useQuery } from '../router/query.ts';

const FILTERS = ['q', 'project', 'phase'];
const keyOf = (row: SweepRow) => refWord(row.ref);

/** All searches of hyperparameters, and the best of each. */
export function SweepsPage() {
  const [query, set] = useQuery();
  const { view, refusal, of, onOffset, all } = useList<SweepRow, Sweeps>(
    '/sweeps',
    pick(query, [...FILTERS, 'sort']),
  );
  return (
    <Page title="Sweeps" lead={view?.lead ?? null} refusal={refusal}>
      {view && (
        <Card
          title="Sweeps"
          about="trials: succeeded, running, waiting, pruned and failed"
          more={<Csv name="sweeps" columns={SWEEP_COLUMNS} rows={all} />}
        >
          <div className="filters" role="search">
            <Search
              label="name or namespace"
              value={query.get('q') ?? ''}
              onSearch={(q) => set({ q })}
            />
          </div>
          {view.total === 0 ? (
            <NoSweeps filtered={pick(query, FILTERS) !== ''} />
          ) : (
            <VirtualList
              label="sweeps"
              columns={SWEEP_COLUMNS}
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
