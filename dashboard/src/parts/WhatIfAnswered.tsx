import type { WhatIfAnswer, WhatIfRow } from '../api/views.ts';
import { counted } from '../format/number.ts';
import type { Column } from './column.ts';
import { Pieces } from './Lead.tsx';
import { List } from './List.tsx';
import { Told } from './Told.tsx';

const keyOf = (row: WhatIfRow) => row.name;
const COLUMNS: readonly Column<WhatIfRow>[] = [
  {
    key: 'job',
    head: 'job',
    width: 'minmax(0, 1fr)',
    narrow: 'name',
    cell: (row) => (
      <>
        {row.name}
        {row.pods > 1 && <small className="beside"> ({row.pods} pods)</small>}
        {row.message && (
          <small>
            <Told text={row.message} />
          </small>
        )}
      </>
    ),
  },
  {
    key: 'result',
    head: 'would',
    width: '160px',
    end: true,
    narrow: 'number',
    cell: (row) => row.result,
  },
];

/** What would become of those that wait. */
export function WhatIfAnswered({ answer }: { answer: WhatIfAnswer }) {
  return (
    <>
      <p className="answer">
        <Pieces pieces={answer.lead.first} />{' '}
        <span className="sub">
          <Pieces pieces={answer.lead.then} />
        </span>
      </p>
      {answer.rows.length > 0 && (
        <List label="what would be" columns={COLUMNS} rows={answer.rows} keyOf={keyOf} />
      )}
      {answer.omitted > 0 && <p className="sub">and {counted(answer.omitted, 'more', 'more')}</p>}
    </>
  );
}
