import type { ReactNode } from 'react';

import type { WorkRef } from '../api/views.ts';
import type { Column } from './column.ts';
import { JobLink } from './JobLink.tsx';

/** Which workload a row is about, and where; `more` is said behind its namespace. */
export function jobColumn<T extends { readonly ref: WorkRef }>(
  width: string,
  more?: (row: T) => ReactNode,
): Column<T> {
  return {
    key: 'job',
    head: 'job',
    width,
    narrow: 'name',
    sort: 'name',
    upwards: true,
    file: (row) => `${row.ref.namespace}/${row.ref.name}`,
    cell: (row) => (
      <>
        <JobLink of={row.ref} />
        <small>
          {row.ref.namespace}
          {row.ref.kind !== 'GPUJob' && ` · ${row.ref.kind}`}
          {more?.(row)}
        </small>
      </>
    ),
  };
}
