import { SimpleTable } from '@kinvolk/headlamp-plugin/lib/CommonComponents';
import type { GPUJobStatusCondition } from '../kinds/types.ts';
import { moment } from '../read/moment.ts';
import { Age } from './Age.tsx';

/** What an object's conditions say, each with its sentence. */
export function Conditions({ of }: { of: readonly GPUJobStatusCondition[] }) {
  return (
    <SimpleTable
      columns={[
        { label: 'Condition', gridTemplate: 'auto', getter: row => row.type },
        { label: 'Holds', gridTemplate: 'auto', getter: row => row.status },
        { label: 'Reason', gridTemplate: 'auto', getter: row => row.reason },
        { label: 'Message', gridTemplate: '2fr', getter: row => row.message ?? '' },
        {
          label: 'For',
          gridTemplate: 'auto',
          getter: row => <Age at={moment(row.lastTransitionTime)} />,
        },
      ]}
      data={[...of]}
    />
  );
}
