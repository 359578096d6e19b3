import { useState } from 'react';

import { csv } from '../format/csv.ts';
import type { Column } from './column.ts';

interface Props<T> {
  name: string;
  columns: readonly Column<T>[];
  /** All rows, also those that are not shown. */
  rows: () => readonly T[] | Promise<readonly T[]>;
}

/** A button that saves a table as a file. */
export function Csv<T>({ name, columns, rows }: Props<T>) {
  const [busy, setBusy] = useState(false);
  const [failed, setFailed] = useState('');
  const write = async () => {
    setBusy(true);
    setFailed('');
    try {
      const filed = columns.filter((column) => column.file);
      const table = (await rows()).map((row) => filed.map((column) => column.file?.(row) ?? null));
      save(
        `${name}.csv`,
        csv(
          filed.map((column) => column.key),
          table,
        ),
      );
    } catch (error) {
      setFailed(error instanceof Error ? error.message : String(error));
    }
    setBusy(false);
  };
  return (
    <button type="button" className="bare" disabled={busy} onClick={() => void write()}>
      {busy ? 'CSV …' : 'CSV'}
      <span role="status" className="bad">
        {failed && ` ${failed}`}
      </span>
    </button>
  );
}

function save(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: 'text/csv' }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
