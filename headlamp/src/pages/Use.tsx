import type { GPUUsage } from '../kinds/types.ts';
import { Age } from '../parts/Age.tsx';
import type { Column } from '../parts/column.ts';
import { JobLink } from '../parts/JobLink.tsx';
import { ListPage } from '../parts/ListPage.tsx';
import { Nothing } from '../parts/Nothing.tsx';
import { Rows } from '../parts/Rows.tsx';
import { Known } from '../parts/Unknown.tsx';
import type { Listing } from '../read/listing.ts';
import { leftOut, linesOfUse, sumOfUse, type UseLine } from '../read/use.ts';
import { wordsOfUse } from '../read/wordsOfUse.ts';
import { gpus, hours, memory, percent } from '../shared.ts';

/** Who holds GPUs and what they do with them, those that do nothing first. */
export function Use({ usage }: { usage: Listing<GPUUsage> }) {
  return (
    <ListPage title="Use of GPUs" listing={usage} namespaced>
      {items => <Parts items={items} />}
    </ListPage>
  );
}

function Parts({ items }: { items: readonly GPUUsage[] }) {
  const lines = linesOfUse(items);
  if (lines.length === 0) {
    return (
      <Nothing
        words="No work with GPUs is known here."
        help="Either none ran in the last seven days, or agents are not asked what GPUs do. This value of the chart has them keep it:"
        command="helm upgrade RELEASE CHART --reset-then-reuse-values --set agent.history.enabled=true"
      />
    );
  }
  return (
    <>
      <p className="lead">{wordsOfUse(sumOfUse(lines), leftOut(items))}</p>
      <Rows columns={COLUMNS} rows={lines} />
    </>
  );
}

const UNKNOWN = 'no agent has told it';

const COLUMNS: readonly Column<UseLine>[] = [
  {
    key: 'name',
    head: 'Workload',
    width: '1.4fr',
    value: row => row.name,
    cell: row => (
      <>
        {row.kind === 'GPUJob' ? <JobLink of={row} /> : row.name}
        <div className="sub">{row.kind}</div>
      </>
    ),
  },
  { key: 'namespace', head: 'Namespace', width: '1fr', value: row => row.namespace },
  { key: 'project', head: 'Project', width: '0.8fr', value: row => row.project },
  {
    key: 'gpus',
    head: 'GPUs held',
    width: '0.7fr',
    value: row => row.gpus,
    cell: row => (
      <>
        {gpus(row.gpus)}
        {!row.running && <div className="sub">at most; ended</div>}
      </>
    ),
  },
  {
    key: 'busy',
    head: 'Busy now',
    width: '0.8fr',
    value: row => row.busyNow ?? -1,
    cell: row => (
      <>
        {row.running ? <Ratio of={row.busyNow} /> : '–'}
        {row.idleSince !== null && (
          <div className="bad">
            idle <Age at={row.idleSince} />
          </div>
        )}
      </>
    ),
  },
  {
    key: 'mean',
    head: 'Busy in all',
    width: '0.7fr',
    value: row => row.busyMean ?? -1,
    cell: row => <Ratio of={row.busyMean} />,
  },
  {
    key: 'memory',
    head: 'Memory, most of cap',
    width: '1fr',
    value: row => row.memoryPeak ?? -1,
    cell: row => <Memory of={row} />,
  },
  {
    key: 'hours',
    head: 'Hours used of held',
    width: '0.9fr',
    value: row => row.gpuHours ?? -1,
    cell: row => <Hours of={row} />,
  },
  { key: 'advice', head: 'Advice', width: '1fr', value: row => row.advice },
];

function Ratio({ of }: { of: number | null }) {
  return (
    <Known value={of} why={UNKNOWN}>
      {percent}
    </Known>
  );
}

function Memory({ of: { memoryPeak, memoryCap } }: { of: UseLine }) {
  return (
    <Known value={memoryPeak} why={UNKNOWN}>
      {peak => (memoryCap === null ? memory(peak) : `${memory(peak)} of ${memory(memoryCap)}`)}
    </Known>
  );
}

function Hours({ of: { gpuHours, usedGpuHours } }: { of: UseLine }) {
  const known = (value: number | null) => (
    <Known value={value} why={UNKNOWN}>
      {hours}
    </Known>
  );
  return (
    <>
      {known(usedGpuHours)} of {known(gpuHours)}
    </>
  );
}
