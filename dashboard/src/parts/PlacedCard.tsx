import type { JobView, Placed } from '../api/views.ts';
import { devicePath } from '../format/job.ts';
import { gpus, measured, memory, percent } from '../format/number.ts';
import { Link } from '../router/Link.tsx';
import { Card } from './Card.tsx';
import type { Column } from './column.ts';
import { ofCap } from './device.ts';
import { List } from './List.tsx';
import { Age } from './Time.tsx';
import { Known, NO_USE } from './Unknown.tsx';

const keyOf = (row: Placed) => row.pod;

const APART = 0.1;

const COLUMNS: readonly Column<Placed>[] = [
  {
    key: 'pod',
    head: 'pod',
    width: 'minmax(0, 1.5fr)',
    narrow: 'name',
    cell: (row) => (
      <>
        {row.pod}
        {row.role && <small>{row.role}</small>}
      </>
    ),
  },
  {
    key: 'where',
    head: 'where',
    width: 'minmax(0, 1.3fr)',
    narrow: 'sentence',
    cell: (row) => (
      <>
        {row.node}
        {row.devices.map((index) => (
          <span key={index}>
            {', '}
            <Link to={devicePath(row.node, index)} className="q">
              GPU {index}
            </Link>
          </span>
        ))}
      </>
    ),
  },
  { key: 'GPU', head: 'GPU', width: '48px', end: true, cell: (row) => gpus(row.gpus) },
  {
    key: 'use',
    head: 'use',
    width: '56px',
    end: true,
    narrow: 'number',
    about: 'of its devices’ time, with a kernel of its own',
    cell: (row) => (
      <Known value={row.busy} why={NO_USE}>
        {percent}
      </Known>
    ),
  },
  {
    key: 'memory',
    head: 'GPU memory',
    width: '112px',
    end: true,
    cell: (row) => (
      <Known value={row.memoryMib} why={NO_USE}>
        {(held) => ofCap(held, row.capMib)}
      </Known>
    ),
  },
  {
    key: 'CPU',
    head: 'CPUs',
    width: '92px',
    end: true,
    about: 'cores used, of the limit',
    cell: (row) => (
      <Known value={row.cpuCores} why={NO_USE}>
        {(cores) => (
          <span
            className={row.cpuLimit !== null && cores > 0.95 * row.cpuLimit ? 'bad' : undefined}
          >
            {`${measured(Math.round(cores * 10) / 10)}${row.cpuLimit === null ? '' : ` of ${gpus(row.cpuLimit)}`}`}
          </span>
        )}
      </Known>
    ),
  },
  {
    key: 'RAM',
    head: 'main memory',
    width: '118px',
    end: true,
    cell: (row) => (
      <Known value={row.ramMib} why={NO_USE}>
        {(held) => (row.ramLimitMib === null ? memory(held) : ofCap(held, row.ramLimitMib))}
      </Known>
    ),
  },
  {
    key: 'runs',
    head: 'runs',
    width: '88px',
    end: true,
    narrow: 'more',
    cell: (row) => row.started !== null && <Age at={row.started} />,
  },
];

/** The pods of a job that hold GPUs, and for which of them the others wait. */
export function PlacedCard({ job: { placed, slowest } }: { job: JobView }) {
  const apart = slowest !== null && slowest.median - slowest.mean >= APART;
  return (
    <Card
      title="Its pods"
      about={
        apart
          ? `the others wait for the slowest, ${slowest.pod}: it uses its GPUs ${percent(slowest.mean)} of the time, half of them ${percent(slowest.median)} or more`
          : undefined
      }
    >
      <List label="pods that hold GPUs" columns={COLUMNS} rows={placed} keyOf={keyOf} />
    </Card>
  );
}
