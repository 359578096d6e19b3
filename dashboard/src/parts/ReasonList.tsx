import type { ReasonRow } from '../api/views.ts';
import { count } from '../format/number.ts';
import { Link } from '../router/Link.tsx';
import type { Column } from './column.ts';
import { List } from './List.tsx';
import { Mark } from './Mark.tsx';
import { Age } from './Time.tsx';
import { Told } from './Told.tsx';

const keyOf = (row: ReasonRow) => row.reason;
const COLUMNS: readonly Column<ReasonRow>[] = [
  {
    key: 'jobs',
    head: 'jobs',
    width: '36px',
    end: true,
    cell: (row) => (
      <b>
        <Mark value={count(row.jobs)} />
      </b>
    ),
  },
  {
    key: 'reason',
    head: 'reason',
    width: 'minmax(0, 1fr)',
    narrow: 'name',
    cell: (row) => (
      <>
        <Link to={`/queue?reason=${encodeURIComponent(row.reason)}`} className="q">
          {row.reason}
        </Link>
        <span className="only-narrow"> × {count(row.jobs)}</span>
        <small>
          <Told text={row.message} />
        </small>
      </>
    ),
  },
  {
    key: 'longest',
    head: 'longest',
    width: '86px',
    end: true,
    narrow: 'number',
    cell: (row) => <Age at={row.since} />,
  },
];

/** Why some wait, with what the one is told that waits longest. */
export function ReasonList({ rows }: { rows: readonly ReasonRow[] }) {
  return <List label="why jobs wait" columns={COLUMNS} rows={rows} keyOf={keyOf} />;
}
