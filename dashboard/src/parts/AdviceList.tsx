import type { AdviceRow } from '../api/views.ts';
import { refWord } from '../format/job.ts';
import type { Column } from './column.ts';
import { JobLink } from './JobLink.tsx';
import { List } from './List.tsx';
import { Age } from './Time.tsx';

const keyOf = (row: AdviceRow) => `${refWord(row.ref)} ${row.rule}`;
const COLUMNS: readonly Column<AdviceRow>[] = [
  {
    key: 'job',
    head: 'job',
    width: 'minmax(0, 1fr)',
    narrow: 'name',
    cell: (row) => <JobLink of={row.ref} />,
  },
  {
    key: 'advice',
    head: 'what its GPU does',
    width: 'minmax(0, 2.6fr)',
    narrow: 'sentence',
    cell: (row) => row.message,
  },
  {
    key: 'since',
    head: 'for',
    width: '86px',
    end: true,
    narrow: 'number',
    cell: (row) => row.since !== null && <Age at={row.since} />,
  },
];

/** What to change about some workloads. */
export function AdviceList({ rows }: { rows: readonly AdviceRow[] }) {
  return <List label="what to change" columns={COLUMNS} rows={rows} keyOf={keyOf} />;
}
