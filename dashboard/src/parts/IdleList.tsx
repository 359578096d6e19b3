import type { IdleRow } from '../api/views.ts';
import { refWord } from '../format/job.ts';
import { gpus, hours } from '../format/number.ts';
import type { Column } from './column.ts';
import { Command } from './Copy.tsx';
import { JobLink } from './JobLink.tsx';
import { List } from './List.tsx';
import { Age } from './Time.tsx';
import { NO_ACCOUNTS, Unknown } from './Unknown.tsx';

const keyOf = (row: IdleRow) => refWord(row.ref);
const COLUMNS: readonly Column<IdleRow>[] = [
  {
    key: 'job',
    head: 'job',
    width: 'minmax(0, 1.3fr)',
    narrow: 'name',
    cell: (row) => <JobLink of={row.ref} />,
  },
  {
    key: 'owner',
    head: 'owner',
    width: 'minmax(0, 1fr)',
    narrow: 'sentence',
    cell: (row) => (
      <>
        <Unknown why={NO_ACCOUNTS} /> · {row.project || row.ref.namespace}
      </>
    ),
  },
  { key: 'GPU', head: 'GPU', width: '44px', end: true, cell: (row) => gpus(row.gpus) },
  {
    key: 'idle',
    head: 'idle',
    width: '90px',
    end: true,
    narrow: 'more',
    cell: (row) => <Age at={row.idleSince} />,
  },
  {
    key: 'GPU-hours',
    head: 'GPU-hours',
    width: '74px',
    end: true,
    narrow: 'number',
    about: 'held since the last kernel',
    cell: (row) => (
      <>
        {hours(row.gpuHours)}
        <span className="only-narrow"> GPU-h</span>
      </>
    ),
  },
];

/** Who holds GPUs and does not use them; the first one's line to give them back. */
export function IdleList({ rows }: { rows: readonly IdleRow[] }) {
  const first = rows.find((row) => row.command);
  return (
    <>
      <List label="held and not used" columns={COLUMNS} rows={rows} keyOf={keyOf} />
      {first && <Command line={first.command} />}
    </>
  );
}
