import type { ProjectRow } from '../api/views.ts';
import { projectPath } from '../format/job.ts';
import { count, gpus } from '../format/number.ts';
import { mostOf } from '../format/quota.ts';
import { Link } from '../router/Link.tsx';
import type { Column } from './column.ts';
import { List } from './List.tsx';
import { Mark } from './Mark.tsx';
import { QuotaBar } from './QuotaBar.tsx';
import { Moment } from './Time.tsx';
import { None } from './Unknown.tsx';

const keyOf = (row: ProjectRow) => row.name;

/** Projects in a few columns: what they hold of what they are due. */
export function ProjectList({ rows }: { rows: readonly ProjectRow[] }) {
  const most = mostOf(rows);
  const columns: Column<ProjectRow>[] = [
    {
      key: 'project',
      head: 'project',
      width: 'minmax(64px, .8fr)',
      narrow: 'name',
      cell: (row) => (
        <Link to={projectPath(row.name)} className="q">
          {row.name}
        </Link>
      ),
    },
    {
      key: 'GPUs',
      head: 'GPUs',
      width: 'minmax(60px, 1.6fr)',
      narrow: 'sentence',
      cell: (row) => <QuotaBar row={row} most={most} />,
    },
    {
      key: 'held',
      head: 'held',
      width: '86px',
      end: true,
      narrow: 'number',
      about: 'GPUs held now, of the quota',
      cell: (row) => <Held row={row} />,
    },
    {
      key: 'borrowed',
      head: 'borrowed',
      width: '108px',
      end: true,
      narrow: 'more',
      about: 'GPUs held above the quota, and since when without a break',
      cell: (row) => <Borrowed row={row} />,
    },
    {
      key: 'waiting',
      head: 'waiting',
      width: '50px',
      end: true,
      about: 'workloads that wait',
      cell: (row) => (row.waiting > 0 ? <Mark value={count(row.waiting)} /> : <None />),
    },
  ];
  return <List label="projects" columns={columns} rows={rows} keyOf={keyOf} />;
}

/** "15.4 of 12". */
export function Held({ row }: { row: ProjectRow }) {
  return (
    <>
      <Mark value={gpus(row.held)} /> of {gpus(row.quota)}
    </>
  );
}

/** "3.4 since 09:12". */
export function Borrowed({ row }: { row: ProjectRow }) {
  if (row.borrowed <= 0) return <None />;
  return (
    <>
      <Mark value={gpus(row.borrowed)} />
      {row.borrowedSince !== null && (
        <small className="beside">
          {' since '}
          <Moment at={row.borrowedSince} />
        </small>
      )}
    </>
  );
}
