import type { GPUJob } from '../kinds/types.ts';
import { Age } from '../parts/Age.tsx';
import type { Column } from '../parts/column.ts';
import { JobLink } from '../parts/JobLink.tsx';
import { ListPage } from '../parts/ListPage.tsx';
import { Nothing } from '../parts/Nothing.tsx';
import { Phase } from '../parts/Phase.tsx';
import { Rows } from '../parts/Rows.tsx';
import { Known } from '../parts/Unknown.tsx';
import { inOrder, type JobLine, jobLine, phaseWords } from '../read/job.ts';
import type { Listing } from '../read/listing.ts';

/** All GPUJobs, what waits first, each with the reason and the planner's sentence. */
export function Jobs({ jobs }: { jobs: Listing<GPUJob> }) {
  return (
    <ListPage title="GPU jobs" listing={jobs} namespaced>
      {items =>
        items.length > 0 ? (
          <Rows columns={COLUMNS} rows={inOrder(items.map(jobLine))} />
        ) : (
          <Nothing
            words="No GPU job yet."
            help="This takes half a GPU for a program in an image of yours:"
            command="kubectl gpu submit train -i IMAGE -g 0.5"
          />
        )
      }
    </ListPage>
  );
}

const COLUMNS: readonly Column<JobLine>[] = [
  {
    key: 'name',
    head: 'Name',
    width: '1.2fr',
    value: row => row.name,
    cell: row => <JobLink of={row} />,
  },
  { key: 'namespace', head: 'Namespace', width: '1fr', value: row => row.namespace },
  { key: 'project', head: 'Project', width: '0.8fr', value: row => row.project },
  {
    key: 'status',
    head: 'Status and why',
    width: '3fr',
    value: row => `${phaseWords(row)} ${row.message}`,
    cell: row => (
      <>
        <Phase of={row} />
        {row.message && <div className="sub">{row.message}</div>}
      </>
    ),
  },
  {
    key: 'gpu',
    head: 'GPU held/asked',
    width: '0.8fr',
    value: row => row.gpu,
    cell: row => (
      <Known value={row.gpu} why="the operator has not looked at it yet" children={words} />
    ),
  },
  { key: 'pods', head: 'Pods run/done/all', width: '0.8fr', value: row => row.pods },
  { key: 'node', head: 'Node', width: '0.8fr', value: row => row.node },
  {
    key: 'age',
    head: 'Age',
    width: '0.6fr',
    value: row => -(row.created ?? 0),
    cell: row => <Age at={row.created} />,
  },
];

const words = (text: string) => text;
