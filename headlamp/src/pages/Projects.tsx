import { useMemo } from 'react';
import type { GPUProject } from '../kinds/types.ts';
import type { Column } from '../parts/column.ts';
import { ListPage } from '../parts/ListPage.tsx';
import { Nothing } from '../parts/Nothing.tsx';
import { QuotaBar } from '../parts/QuotaBar.tsx';
import { Rows } from '../parts/Rows.tsx';
import { Known } from '../parts/Unknown.tsx';
import type { Listing } from '../read/listing.ts';
import { type ProjectLine, projectLine } from '../read/project.ts';
import { counted, gpus, mostOf } from '../shared.ts';

/** What each project holds of its quota, borrows above it, and waits for. */
export function Projects({ projects }: { projects: Listing<GPUProject> }) {
  return (
    <ListPage title="GPU projects" listing={projects} namespaced={false}>
      {items =>
        items.length > 0 ? (
          <Bars lines={items.map(projectLine)} />
        ) : (
          <Nothing
            words="No GPU project yet: work of all namespaces is charged to nobody’s quota."
            help="This guarantees two GPUs to the work in a namespace:"
            command="kubectl gpu project create NAME --quota 2 -n NAMESPACE"
          />
        )
      }
    </ListPage>
  );
}

function Bars({ lines }: { lines: readonly ProjectLine[] }) {
  const most = mostOf(lines);
  const columns = useMemo(() => columnsOf(most), [most]);
  return (
    <>
      <p className="sub">
        Strong green: held up to the quota; faint: borrowed above it; grey: up to the limit; the
        mark is the quota. All in GPUs.
      </p>
      <Rows columns={columns} rows={lines} />
    </>
  );
}

const UNSAID = 'the operator has not said it yet';

function columnsOf(most: number): readonly Column<ProjectLine>[] {
  const number = (value: number | null) => (
    <Known value={value} why={UNSAID}>
      {gpus}
    </Known>
  );
  return [
    {
      key: 'name',
      head: 'Project',
      width: '1.2fr',
      value: row => row.name,
      cell: row => (
        <>
          {row.name}
          <div className="sub">{row.namespaces.join(', ')}</div>
          {row.problem && <div className="bad">{row.problem}</div>}
        </>
      ),
    },
    {
      key: 'bar',
      head: 'GPUs',
      width: '2.4fr',
      value: row => row.held,
      cell: row => <QuotaBar row={row} most={most} />,
    },
    {
      key: 'held',
      head: 'Held of quota',
      width: '0.9fr',
      value: row => row.held,
      cell: row => (
        <>
          {number(row.known ? row.held : null)} of {gpus(row.quota)}
        </>
      ),
    },
    {
      key: 'borrowed',
      head: 'Borrowed',
      width: '0.7fr',
      value: row => row.borrowed,
      cell: row => number(row.known ? row.borrowed : null),
    },
    {
      key: 'limit',
      head: 'Limit',
      width: '0.6fr',
      value: row => row.limit ?? Infinity,
      cell: row => (row.limit === null ? 'none' : gpus(row.limit)),
    },
    {
      key: 'fairShare',
      head: 'Due',
      width: '0.6fr',
      value: row => row.fairShare ?? 0,
      cell: row => number(row.fairShare),
    },
    {
      key: 'pending',
      head: 'Waiting',
      width: '0.9fr',
      value: row => row.pending ?? 0,
      cell: row => (
        <>
          {number(row.pending)}
          {row.waiting ? <div className="sub">{counted(row.waiting, 'job')}</div> : null}
        </>
      ),
    },
  ];
}
