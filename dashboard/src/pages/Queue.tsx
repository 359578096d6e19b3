import { useList } from '../api/useList.ts';
import type { QueueView, QueueRow } from '../api/views.ts';
import { refWord } from '../format/job.ts';
import { Card } from '../parts/Card.tsx';
import { Csv } from '../parts/Csv.tsx';
import { NothingWaits } from '../parts/Nothing.tsx';
import { Page } from '../parts/Page.tsx';
import { QUEUE_COLUMNS } from '../parts/queueColumns.tsx';
import { Select } from '../parts/Select.tsx';
import { TALL_ROW, VirtualList } from '../parts/VirtualList.tsx';
import { WorkFilters } from '../parts/WorkFilters.tsx';
import { WhatIfCard } from '../parts/WhatIfCard.tsx';
import { pick } from '../router/pick.ts';
import { useQuery } from '../router/query.ts';

const ASKED = ['q', 'project', 'reason', 'type', 'sort'];
const keyOf = (row: QueueRow) => refWord(row.ref);

/** Who waits, why, and what would help. */
export function QueuePage() {
  const [query, set] = useQuery();
  const { view, refusal, of, onOffset, all } = useList<QueueRow, QueueView>(
    '/queue',
    pick(query, ASKED),
  );
  const sort = query.get('sort') ?? '';
  return (
    <Page title="Queue" lead={view?.lead ?? null} refusal={refusal}>
      {view && (
        <>
          <Card
            title={sort ? 'Who waits' : 'In the order in which they are served'}
            about="# is the place in its project; rows keep their place while they refresh"
            more={<Csv name="queue" columns={QUEUE_COLUMNS} rows={all} />}
          >
            <WorkFilters query={query} set={set} projects={view.projects}>
              <Select
                label="reason"
                all="all reasons"
                value={query.get('reason') ?? ''}
                choices={view.reasons.map((row) => row.reason)}
                onChoose={(reason) => set({ reason })}
              />
            </WorkFilters>
            {view.total === 0 ? (
              <NothingWaits filtered={pick(query, ['q', 'project', 'reason', 'type']) !== ''} />
            ) : (
              <VirtualList
                label="who waits"
                height={TALL_ROW}
                columns={QUEUE_COLUMNS}
                rows={view.rows}
                keyOf={keyOf}
                total={view.total}
                offset={view.offset}
                question={of}
                onOffset={onOffset}
                sort={sort}
                onSort={(next) => set({ sort: next })}
              />
            )}
          </Card>
          <WhatIfCard projects={view.projects} />
        </>
      )}
    </Page>
  );
}
