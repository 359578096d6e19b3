import type { CSSProperties } from 'react';

import type { Column } from './column.ts';
import { Head } from './Head.tsx';
import { Row } from './Row.tsx';
import { useSteady } from './useSteady.ts';

interface Props<T> {
  label: string;
  columns: readonly Column<T>[];
  rows: readonly T[];
  keyOf: (row: T) => string;
  sort?: string;
  onSort?: (sort: string) => void;
}

/** A short list, all of which is there. */
export function List<T>({ label, columns, rows, keyOf, sort = '', onSort }: Props<T>) {
  const { rows: shown, fresh } = useSteady(rows, keyOf, sort);
  const style = { '--columns': columns.map((column) => column.width).join(' ') } as CSSProperties;
  return (
    <div className="list" role="table" aria-label={label} style={style}>
      <Head columns={columns} sort={sort} onSort={onSort} />
      <div className="body" role="rowgroup">
        {shown.map((row, index) => {
          const key = keyOf(row);
          return <Row key={key} row={row} columns={columns} index={index} fresh={fresh.has(key)} />;
        })}
      </div>
    </div>
  );
}
