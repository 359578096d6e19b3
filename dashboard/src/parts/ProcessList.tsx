import type { ProcessRow } from '../api/views.ts';
import { memory, percent } from '../format/number.ts';
import type { Column } from './column.ts';
import { JobLink } from './JobLink.tsx';
import { List } from './List.tsx';
import { Known, NO_USE } from './Unknown.tsx';

const COLUMNS: readonly Column<ProcessRow>[] = [
  { key: 'pid', head: 'PID', width: '84px', narrow: 'number', cell: ({ pid }) => pid },
  {
    key: 'job',
    head: 'job',
    width: 'minmax(0, 1.2fr)',
    narrow: 'name',
    cell: ({ ref }) => <JobLink of={ref} />,
  },
  {
    key: 'container',
    head: 'container',
    width: 'minmax(0, 1.4fr)',
    narrow: 'sentence',
    cell: ({ pod, container }) => `${container} of ${pod}`,
  },
  {
    key: 'memory',
    head: 'memory',
    width: '96px',
    end: true,
    narrow: 'more',
    cell: ({ memoryMib }) => (
      <Known value={memoryMib} why={NO_USE}>
        {memory}
      </Known>
    ),
  },
  {
    key: 'use',
    head: 'use',
    width: '64px',
    end: true,
    about: 'of the device’s time',
    cell: ({ busy }) => (
      <Known value={busy} why={NO_USE}>
        {percent}
      </Known>
    ),
  },
];

/** Who computes on a GPU, by its node's process ids. */
export function ProcessList({ processes }: { processes: readonly ProcessRow[] }) {
  return (
    <List
      label="its processes"
      columns={COLUMNS}
      rows={processes}
      keyOf={({ pid }) => String(pid)}
    />
  );
}
