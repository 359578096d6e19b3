import type { QueueRow } from '../api/views.ts';
import { gpus } from '../format/number.ts';
import { iso } from '../format/moment.ts';
import type { Column } from './column.ts';
import { jobColumn } from './jobColumn.tsx';
import { Mark } from './Mark.tsx';
import { Age } from './Time.tsx';
import { Told } from './Told.tsx';
import { Unknown } from './Unknown.tsx';

/** "0.5", "4 × 1". */
export function asksFor(row: Pick<QueueRow, 'pods' | 'each'>): string {
  return row.pods > 1 ? `${row.pods} × ${row.each}` : row.each;
}

export const QUEUE_COLUMNS: readonly Column<QueueRow>[] = [
  {
    key: 'position',
    head: '#',
    width: '34px',
    end: true,
    about: 'position within its project: 1 is next',
    file: (row) => row.position || null,
    cell: (row) =>
      row.position > 0 ? (
        <span className="quiet">
          <Mark value={row.position} />
        </span>
      ) : (
        <Unknown why="it is not in its project’s order" />
      ),
  },
  jobColumn<QueueRow>('minmax(0, 1.3fr)'),
  {
    key: 'project',
    head: 'project',
    width: 'minmax(0, .8fr)',
    file: (row) => row.project,
    cell: (row) => (
      <>
        {row.project}
        {row.priority && <small>priority {row.priority}</small>}
      </>
    ),
  },
  {
    key: 'GPUs',
    head: 'GPUs',
    width: '84px',
    end: true,
    sort: 'gpus',
    about: 'pods × GPUs of each',
    file: (row) => row.gpus,
    cell: (row) => (
      <span title={`${gpus(row.gpus)} in all`}>
        {asksFor(row)}
        {row.type && <small>{row.type}</small>}
      </span>
    ),
  },
  {
    key: 'reason',
    head: 'why it waits',
    width: 'minmax(0, 3fr)',
    narrow: 'sentence',
    file: (row) => `${row.reason}: ${row.message}`,
    cell: (row) => (
      <div title={row.message} className="two-lines">
        <Mark value={row.reason} />
        <small>
          <Told text={row.message} />
        </small>
      </div>
    ),
  },
  {
    key: 'waits',
    head: 'waits',
    width: '92px',
    end: true,
    narrow: 'number',
    sort: 'since',
    file: (row) => iso(row.since),
    cell: (row) => <Age at={row.since} />,
  },
  {
    key: 'mends',
    head: 'starts',
    width: '158px',
    end: true,
    narrow: 'more',
    about: 'whether waiting alone can help',
    file: (row) => (row.mends ? 'not before it is mended' : ''),
    cell: (row) =>
      row.mends ? (
        <span className="bad">not before it is mended</span>
      ) : (
        <span className="sub">by itself</span>
      ),
  },
];
