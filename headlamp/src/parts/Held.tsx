import { SimpleTable } from '@kinvolk/headlamp-plugin/lib/CommonComponents';
import type { HeldLine } from '../read/held.ts';
import { percent } from '../shared.ts';
import { Known } from './Unknown.tsx';

const SILENT = 'no agent has told it';

/** The pods of a job that hold GPUs, and which. */
export function Held({ lines }: { lines: readonly HeldLine[] }) {
  return (
    <SimpleTable
      columns={[
        { label: 'Pod', gridTemplate: '2fr', getter: (row: HeldLine) => row.pod },
        { label: 'Node', gridTemplate: '1fr', getter: (row: HeldLine) => row.node },
        { label: 'GPUs', gridTemplate: '2fr', getter: (row: HeldLine) => row.devices },
        { label: 'Memory cap per GPU', gridTemplate: '1fr', getter: (row: HeldLine) => row.cap },
        {
          label: 'Cap kept by',
          gridTemplate: '1fr',
          getter: (row: HeldLine) => (
            <Known value={row.isolation} why={SILENT}>
              {words => words}
            </Known>
          ),
        },
        {
          label: 'Busy, mean of 5 min',
          gridTemplate: '1fr',
          getter: (row: HeldLine) => (
            <Known value={row.busy} why={SILENT}>
              {percent}
            </Known>
          ),
        },
      ]}
      data={[...lines]}
    />
  );
}
