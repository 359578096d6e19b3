import type { EarlierRow } from '../api/views.ts';
import { gpus, measured } from '../format/number.ts';
import type { Column } from './column.ts';
import { JobLink } from './JobLink.tsx';
import { List } from './List.tsx';
import { Age, Moment } from './Time.tsx';

const COLUMNS: readonly Column<EarlierRow>[] = [
  {
    key: 'job',
    head: 'job',
    width: 'minmax(0, 1.6fr)',
    narrow: 'name',
    cell: ({ ref }) => <JobLink of={ref} />,
  },
  {
    key: 'share',
    head: 'share',
    width: '64px',
    end: true,
    narrow: 'number',
    about: 'of the GPU, that one of its pods held at most',
    cell: (row) => gpus(row.gpus),
  },
  {
    key: 'pods',
    head: 'pods',
    width: '64px',
    end: true,
    about: 'that gave it back',
    cell: ({ pods }) => measured(pods),
  },
  {
    key: 'held',
    head: 'held for',
    width: '96px',
    end: true,
    narrow: 'more',
    about: 'from the first pod that got it to the last that gave it back',
    cell: ({ since, until }) => <Age at={since} until={until} />,
  },
  {
    key: 'when',
    head: 'when',
    width: '148px',
    end: true,
    narrow: 'sentence',
    cell: ({ until }) => (
      <>
        until <Moment at={until} />
      </>
    ),
  },
];

const keyOf = ({ ref, since }: EarlierRow) => `${ref.namespace} ${ref.kind} ${ref.name} ${since}`;

/** Who held a GPU and gave it back, the last first. */
export function EarlierList({ rows }: { rows: readonly EarlierRow[] }) {
  return <List label="who held it before" columns={COLUMNS} rows={rows} keyOf={keyOf} />;
}
