import type { CSSProperties } from 'react';

import type { Column } from './column.ts';

interface Props<T> {
  row: T;
  columns: readonly Column<T>[];
  index: number;
  fresh: boolean;
  style?: CSSProperties;
}

/** One entry of a list. */
export function Row<T>({ row, columns, index, fresh, style }: Props<T>) {
  return (
    <div
      role="row"
      className={fresh ? 'row fresh' : 'row'}
      aria-rowindex={index + 2}
      {...(style && { style })}
    >
      {columns.map((column) => (
        <div
          key={column.key}
          role="cell"
          className={column.end ? 'cell end' : 'cell'}
          data-narrow={column.narrow}
        >
          {column.cell(row)}
        </div>
      ))}
    </div>
  );
}
