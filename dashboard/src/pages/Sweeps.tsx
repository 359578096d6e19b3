import { useList } from '../api/useList.ts';
import type { SweepRow, SweepsView } from '../api/views.ts';
import { refWord } from '../format/job.ts';
import { Card } from '../parts/Card.tsx';
import { Csv } from '../parts/Csv.tsx';
import { NoSweeps } from '../parts/Nothing.tsx';
import { sorted } from '../parts/order.ts';
import { Page } from '../parts/Page.tsx';
import { Search } from '../parts/Search.tsx';
import { SWEEP_COLUMNS } from '../parts/sweepColumns.tsx';
import { VirtualList } from '../parts/VirtualList.tsx';
import { useQuery } from '../router/query.ts';

const keyOf = (row: SweepRow) => refWord(row.ref);

/** All searches of hyperparameters, and the best of each. */
export function SweepsPage() {
  const { view, refusal, of, onOffset, all } = useList<SweepRow, SweepsView>('/sweeps', '');
  return (
    <Page title="Sweeps" lead={view?.lead ?? null} refusal={refusal}>
      {view && (
        <Card
          title="Sweeps"
          about="trials: succeeded, running, waiting, pruned and failed"
          more={<Csv name="sweeps" columns={SWEEP_COLUMNS} rows={all} />}
        >
          <Rows view={view} of={of} onOffset={onOffset} />
        </Card>
      )}
    </Page>
  );
}

interface Props {
  view: SweepsView;
  of: string;
  onOffset: (offset: number) => void;
}

/** The server has them newest first; where all of them are here, they are searched and sorted here. */
function Rows({ view, of, onOffset }: Props) {
  const [query, set] = useQuery();
  const words = (query.get('q') ?? '').toLowerCase();
  const sort = query.get('sort') ?? '';
  const whole = view.rows.length === view.total;
  const found = view.rows.filter(({ ref }) => `${ref.namespace}/${ref.name}`.includes(words));
  const rows = whole ? sorted(found, SWEEP_COLUMNS, sort) : view.rows;
  return (
    <>
      {whole && view.total > 0 && (
        <div className="filters" role="search">
          <Search
            label="name or namespace"
            value={query.get('q') ?? ''}
            onSearch={(q) => set({ q })}
          />
        </div>
      )}
      {whole && rows.length === 0 ? (
        <NoSweeps filtered={view.total > 0} />
      ) : (
        <VirtualList
          label="sweeps"
          columns={SWEEP_COLUMNS}
          rows={rows}
          keyOf={keyOf}
          total={whole ? rows.length : view.total}
          offset={view.offset}
          question={`${of} ${whole ? `${words} ${sort}` : ''}`}
          onOffset={onOffset}
          sort={whole ? sort : ''}
          onSort={whole ? (next) => set({ sort: next }) : undefined}
        />
      )}
    </>
  );
}
