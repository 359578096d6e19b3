import type { ReactNode } from 'react';

import type { Cell } from '../format/csv.ts';

/** Where a cell goes when an entry is two lines: `name number` over `sentence more`. */
export type Narrow = 'name' | 'number' | 'sentence' | 'more';

export interface Column<T> {
  readonly key: string;
  readonly head: string;
  /** Of the grid's track. */
  readonly width: string;
  readonly cell: (row: T) => ReactNode;
  /** Set right, as numbers are. */
  readonly end?: boolean;
  readonly narrow?: Narrow;
  /** What it is sorted by, in the words of the server. */
  readonly sort?: string;
  /** Whether it is sorted one way alone, from the least. */
  readonly upwards?: boolean;
  /** What the file of the table has. */
  readonly file?: (row: T) => Cell;
  /** What the heading means, on pointing at it. */
  readonly about?: string;
}
