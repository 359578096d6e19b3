import type { ReactNode } from 'react';

/** A column of a table of `Row`s. */
export interface Column<Row> {
  readonly key: string;
  readonly head: string;
  /** As in CSS's grid-template-columns. */
  readonly width?: string;
  /** What it sorts, filters and searches by. */
  readonly value: (row: Row) => string | number;
  /** What it shows, where that is not the value. */
  readonly cell?: (row: Row) => ReactNode;
}
