import type { Column } from './column.ts';
import { nextSort } from './order.ts';

interface Props<T> {
  columns: readonly Column<T>[];
  sort: string;
  onSort: ((sort: string) => void) | undefined;
}

/** The row of headings; those that can be sorted by are buttons. */
export function Head<T>({ columns, sort, onSort }: Props<T>) {
  return (
    <div role="rowgroup">
      <div role="row" className="row head" aria-rowindex={1}>
        {columns.map((column) => (
          <div
            key={column.key}
            role="columnheader"
            className={column.end ? 'end' : undefined}
            title={column.about}
            aria-sort={column.sort && onSort ? direction(sort, column.sort) : undefined}
          >
            {column.sort && onSort ? (
              <button
                type="button"
                onClick={() => onSort(nextSort(sort, column.sort ?? '', column.upwards))}
              >
                {column.head}
              </button>
            ) : (
              column.head
            )}
          </div>
        ))}
      </div>
    </div>
  );
}

function direction(sort: string, field: string): 'ascending' | 'descending' | 'none' {
  if (sort === field) return 'ascending';
  return sort === `-${field}` ? 'descending' : 'none';
}
