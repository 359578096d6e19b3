import type { SweepRow } from '../api/views.ts';
import { sweepPath } from '../format/job.ts';
import { iso } from '../format/moment.ts';
import { count, measured } from '../format/number.ts';
import { Link } from '../router/Link.tsx';
import type { Column } from './column.ts';
import { Mark } from './Mark.tsx';
import { Age } from './Time.tsx';
import { TrialStrip } from './TrialStrip.tsx';
import { Unknown } from './Unknown.tsx';

export const SWEEP_COLUMNS: readonly Column<SweepRow>[] = [
  {
    key: 'sweep',
    head: 'sweep',
    width: 'minmax(0, 1.3fr)',
    narrow: 'name',
    sort: 'name',
    file: (row) => `${row.ref.namespace}/${row.ref.name}`,
    cell: (row) => (
      <>
        <Link to={sweepPath(row.ref)} className="q">
          {row.ref.name}
        </Link>
        <small>{row.ref.namespace}</small>
      </>
    ),
  },
  {
    key: 'project',
    head: 'project',
    width: 'minmax(0, .7fr)',
    sort: 'project',
    file: (row) => row.project,
    cell: (row) => row.project,
  },
  {
    key: 'phase',
    head: 'phase',
    width: '90px',
    sort: 'phase',
    file: (row) => row.phase,
    cell: (row) => (
      <span title={row.message}>
        <Mark value={row.phase} />
      </span>
    ),
  },
  {
    key: 'trials',
    head: 'trials',
    width: 'minmax(0, 2fr)',
    narrow: 'sentence',
    sort: 'trials',
    file: (row) => row.trials,
    cell: (row) => <TrialStrip row={row} />,
  },
  {
    key: 'of',
    head: 'of',
    width: '60px',
    end: true,
    about: 'how many it may have in all',
    cell: (row) => count(row.trials),
  },
  {
    key: 'best',
    head: 'best so far',
    width: 'minmax(110px, .9fr)',
    end: true,
    narrow: 'number',
    sort: 'best',
    file: (row) => row.best?.value ?? null,
    cell: (row) =>
      row.best ? (
        <>
          <b>
            <Mark value={measured(row.best.value)} />
          </b>
          <small>
            {row.objective}, {row.goal === 'minimize' ? 'least' : 'most'}
          </small>
        </>
      ) : (
        <Unknown why="no trial has succeeded yet" />
      ),
  },
  {
    key: 'age',
    head: 'age',
    width: '90px',
    end: true,
    narrow: 'more',
    sort: 'created',
    file: (row) => iso(row.created),
    cell: (row) => <Age at={row.created} />,
  },
];
