import type { JobRow } from '../api/views.ts';
import { podWords } from '../format/job.ts';
import { iso } from '../format/moment.ts';
import { gpus, memory, percent } from '../format/number.ts';
import type { Column } from './column.ts';
import { jobColumn } from './jobColumn.tsx';
import { Mark } from './Mark.tsx';
import { Age } from './Time.tsx';
import { Told } from './Told.tsx';
import { Known, NO_ACCOUNTS, NO_USE, None, Unknown } from './Unknown.tsx';

const ended = (row: JobRow) => row.phase === 'Succeeded' || row.phase === 'Failed';

/** Its phase, and in the product's words why it is so. */
export function PhaseWords({ row }: { row: JobRow }) {
  return (
    <span className={row.phase === 'Failed' ? 'bad' : undefined}>
      <Mark
        value={row.reason && row.reason !== row.phase ? `${row.phase} · ${row.reason}` : row.phase}
      />
    </span>
  );
}

/** Its use, of its devices' time. */
export function Use({ row }: { row: Pick<JobRow, 'busy' | 'idleSince' | 'held'> }) {
  if (row.held === 0) return <None />;
  return (
    <>
      <Known value={row.busy} why={NO_USE}>
        {percent}
      </Known>
      {row.idleSince !== null && (
        <small>
          idle <Age at={row.idleSince} />
        </small>
      )}
    </>
  );
}

/** "0.5", and "0 of 1" where it does not hold all that it asks for. */
function gpusOf(row: JobRow): string {
  const all = gpus(row.asked);
  return ended(row) || row.held === row.asked ? all : `${gpus(row.held)} of ${all}`;
}

export const JOB_COLUMNS: readonly Column<JobRow>[] = [
  jobColumn<JobRow>('minmax(0, 1.5fr)', (row) => row.sweep && ' · of a sweep'),
  {
    key: 'project',
    head: 'project',
    width: 'minmax(0, .8fr)',
    file: (row) => row.project,
    cell: (row) => row.project,
  },
  {
    key: 'phase',
    head: 'phase',
    width: 'minmax(0, 2.2fr)',
    narrow: 'sentence',
    sort: 'phase',
    upwards: true,
    file: (row) => `${row.phase} ${row.reason}`.trim(),
    cell: (row) => (
      <div className="one-line" title={row.message || podWords(row)}>
        <PhaseWords row={row} />
        <small>
          <Told
            text={row.message || (row.node ? `${podWords(row)} on ${row.node}` : podWords(row))}
          />
        </small>
      </div>
    ),
  },
  {
    key: 'GPUs',
    head: 'GPUs',
    width: '72px',
    end: true,
    narrow: 'number',
    sort: 'held',
    about: 'held now, of what it asks for',
    file: (row) => row.held,
    cell: (row) => (
      <>
        <Mark value={gpusOf(row)} />
        <span className="only-narrow"> GPU</span>
        {row.type && <small className="wide-only">{row.type}</small>}
      </>
    ),
  },
  {
    key: 'use',
    head: 'use',
    width: '108px',
    end: true,
    narrow: 'more',
    sort: 'busy',
    about: 'of its devices’ time, with a kernel of its own',
    file: (row) => row.busy,
    cell: (row) => <Use row={row} />,
  },
  {
    key: 'memory',
    head: 'memory',
    width: '76px',
    end: true,
    about: 'of GPUs, held by its own processes',
    file: (row) => row.memoryMib,
    cell: (row) =>
      row.held === 0 ? (
        <None />
      ) : (
        <Known value={row.memoryMib} why={NO_USE}>
          {memory}
        </Known>
      ),
  },
  {
    key: 'advice',
    head: 'advice',
    width: '110px',
    file: (row) => row.advice,
    cell: (row) => (row.advice ? <span className="one-line">{row.advice}</span> : <None />),
  },
  {
    key: 'by',
    head: 'by',
    width: '28px',
    about: 'who submitted it',
    cell: () => <Unknown why={NO_ACCOUNTS} />,
  },
  {
    key: 'created',
    head: 'age',
    width: '88px',
    end: true,
    sort: 'created',
    about: 'since it was submitted; of what has ended, until then',
    file: (row) => iso(row.created),
    cell: (row) => <Age at={row.created} until={row.ended} />,
  },
];
