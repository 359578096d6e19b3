import type { Column } from './column.ts';

/** What a click on a heading asks for: the largest first, the least first, then as it was. */
export function nextSort(now: string, field: string, upwards = false): string {
  if (upwards) return now === field ? '' : field;
  if (now === `-${field}`) return field;
  if (now === field) return '';
  return `-${field}`;
}

/** Rows sorted here, where a view has all of them; `sort` is a column's, with - for the largest first. */
export function sorted<T>(
  rows: readonly T[],
  columns: readonly Column<T>[],
  sort: string,
): readonly T[] {
  const down = sort.startsWith('-');
  const field = down ? sort.slice(1) : sort;
  const value = columns.find((column) => column.sort === field)?.file;
  if (!value) return rows;
  const made = rows.map((row) => ({ row, value: value(row) }));
  made.sort((a, b) => {
    if (a.value === null || b.value === null)
      return Number(a.value === null) - Number(b.value === null);
    const order =
      typeof a.value === 'number' && typeof b.value === 'number'
        ? a.value - b.value
        : String(a.value).localeCompare(String(b.value), 'en', { numeric: true });
    return down ? -order : order;
  });
  return made.map((each) => each.row);
}
