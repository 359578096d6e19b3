import type { GPUJob } from '../kinds/types.ts';
import { Age } from '../parts/Age.tsx';
import { Best } from '../parts/Best.tsx';
import type { Column } from '../parts/column.ts';
import { JobLink } from '../parts/JobLink.tsx';
import { ListPage } from '../parts/ListPage.tsx';
import { Nothing } from '../parts/Nothing.tsx';
import { Phase } from '../parts/Phase.tsx';
import { Rows } from '../parts/Rows.tsx';
import { TrialStrip } from '../parts/TrialStrip.tsx';
import { Known } from '../parts/Unknown.tsx';
import type { Listing } from '../read/listing.ts';
import { type SweepLine, sweepLines } from '../read/sweep.ts';
import { count } from '../shared.ts';

/** All searches of hyperparameters, the newest first, each with the best so far. */
export function Sweeps({ jobs }: { jobs: Listing<GPUJob> }) {
  return (
    <ListPage title="Sweeps" listing={jobs} namespaced>
      {items => <Parts lines={sweepLines(items)} />}
    </ListPage>
  );
}

function Parts({ lines }: { lines: readonly SweepLine[] }) {
  if (lines.length > 0) return <Rows columns={COLUMNS} rows={lines} />;
  return (
    <Nothing
      words="No sweep yet: a search of hyperparameters, whose trials share GPUs."
      command="kubectl explain gpujob.spec.sweep"
    />
  );
}

const COLUMNS: readonly Column<SweepLine>[] = [
  {
    key: 'name',
    head: 'Sweep',
    width: '1.2fr',
    value: row => row.name,
    cell: row => <JobLink of={row} sweep />,
  },
  { key: 'namespace', head: 'Namespace', width: '1fr', value: row => row.namespace },
  { key: 'project', head: 'Project', width: '0.8fr', value: row => row.project },
  {
    key: 'status',
    head: 'Status',
    width: '1fr',
    value: row => row.phase,
    cell: row => <Phase of={row} />,
  },
  {
    key: 'trials',
    head: 'Trials',
    width: '2fr',
    value: row => row.counts['succeeded'] ?? 0,
    cell: row => <TrialStrip counts={row.counts} />,
  },
  {
    key: 'of',
    head: 'In all',
    width: '0.5fr',
    value: row => row.trials ?? 0,
    cell: row => (
      <Known value={row.trials} why="the operator has not looked at it yet">
        {count}
      </Known>
    ),
  },
  {
    key: 'best',
    head: 'Best so far',
    width: '1fr',
    value: row => row.best?.value ?? '',
    cell: row => <Best of={row} />,
  },
  {
    key: 'age',
    head: 'Age',
    width: '0.6fr',
    value: row => -(row.created ?? 0),
    cell: row => <Age at={row.created} />,
  },
];
