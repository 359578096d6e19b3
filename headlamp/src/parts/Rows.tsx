import { Table } from '@kinvolk/headlamp-plugin/lib/CommonComponents';
import { useMemo } from 'react';
import type { Column } from './column.ts';

interface Props<Row> {
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
}

/**
 * Headlamp's own table: it sorts, filters, searches and turns pages. Its cells put what they hold
 * side by side, so each holds one thing.
 */
export function Rows<Row extends object>({ columns, rows }: Props<Row>) {
  const shown = useMemo(
    () =>
      columns.map(({ key, head, width, value, cell }) => ({
        id: key,
        header: head,
        gridTemplate: width ?? '1fr',
        accessorFn: value,
        Cell: ({ row }: { row: { original: Row } }) => (
          <div className="cell">{cell ? cell(row.original) : value(row.original)}</div>
        ),
      })),
    [columns]
  );
  return <Table<Row> columns={shown} data={[...rows]} />;
}
