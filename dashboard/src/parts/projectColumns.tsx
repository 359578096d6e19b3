import type { ProjectRow } from '../api/views.ts';
import { projectPath } from '../format/job.ts';
import { count, gpus, percent } from '../format/number.ts';
import { Link } from '../router/Link.tsx';
import type { Column } from './column.ts';
import { Mark } from './Mark.tsx';
import { Borrowed, Held } from './ProjectList.tsx';
import { QuotaBar } from './QuotaBar.tsx';
import { Known, NO_ACCOUNTS, NO_USE, None, Unknown } from './Unknown.tsx';

/** The table of projects; `most`: GPUs at the right end of the bars. */
export function projectColumns(most: number): readonly Column<ProjectRow>[] {
  return [
    {
      key: 'project',
      head: 'project',
      width: 'minmax(0, 1fr)',
      narrow: 'name',
      sort: 'name',
      file: (row) => row.name,
      cell: (row) => (
        <>
          <Link to={projectPath(row.name)} className="q">
            {row.name}
          </Link>
          {row.problem && <small className="bad">{row.problem}</small>}
        </>
      ),
    },
    {
      key: 'quota',
      head: 'GPUs',
      width: 'minmax(80px, 1.6fr)',
      narrow: 'sentence',
      sort: 'quota',
      about: 'up to the quota, borrowed above it, grey up to the limit',
      file: (row) => row.quota,
      cell: (row) => <QuotaBar row={row} most={most} />,
    },
    {
      key: 'held',
      head: 'held',
      width: '92px',
      end: true,
      narrow: 'number',
      sort: 'held',
      about: 'GPUs held now, of the quota',
      file: (row) => row.held,
      cell: (row) => <Held row={row} />,
    },
    {
      key: 'limit',
      head: 'limit',
      width: '58px',
      end: true,
      sort: 'limit',
      about: 'the most it may hold',
      file: (row) => row.limit,
      cell: (row) => (row.limit === null ? <span className="sub">none</span> : gpus(row.limit)),
    },
    {
      key: 'fairShare',
      head: 'due',
      width: '58px',
      end: true,
      sort: 'fairShare',
      about: 'its fair share of all GPUs, in GPUs',
      file: (row) => row.fairShare,
      cell: (row) => gpus(row.fairShare),
    },
    {
      key: 'borrowed',
      head: 'borrowed',
      width: '116px',
      end: true,
      narrow: 'more',
      sort: 'borrowed',
      about: 'GPUs held above the quota, and since when without a break',
      file: (row) => row.borrowed,
      cell: (row) => <Borrowed row={row} />,
    },
    {
      key: 'busy',
      head: 'busy',
      width: '64px',
      end: true,
      sort: 'busy',
      about: 'of the GPUs that it holds',
      file: (row) => (row.busy !== null && row.held > 0 ? row.busy / row.held : null),
      cell: (row) =>
        row.held === 0 ? (
          <None />
        ) : (
          <Known value={row.busy} why={NO_USE}>
            {(busy) => percent(Math.min(1, busy / row.held))}
          </Known>
        ),
    },
    {
      key: 'idle',
      head: 'idle',
      width: '54px',
      end: true,
      sort: 'idle',
      about: 'GPUs held idle past the threshold',
      file: (row) => row.idle,
      cell: (row) => (row.idle > 0 ? gpus(row.idle) : <None />),
    },
    {
      key: 'waiting',
      head: 'waiting',
      width: '88px',
      end: true,
      sort: 'pending',
      about: 'workloads that wait, and GPUs that those ask for that can start as they are',
      file: (row) => row.pending,
      cell: (row) =>
        row.waiting > 0 ? (
          <>
            <Mark value={count(row.waiting)} />
            {row.pending > 0 && <small className="beside"> for {gpus(row.pending)}</small>}
          </>
        ) : (
          <None />
        ),
    },
    {
      key: 'consumed',
      head: 'GPU-hours',
      width: '76px',
      end: true,
      about: 'consumed this month',
      cell: () => <Unknown why={NO_ACCOUNTS} />,
    },
  ];
}
