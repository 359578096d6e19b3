import { useCallback, useState } from 'react';

import { LIMIT } from '../parts/window.ts';
import { patched } from '../router/query.ts';
import { ask } from './client.ts';
import { useView, type Viewed } from './useView.ts';

interface ListView<R> {
  readonly at: number;
  readonly total: number;
  readonly offset: number;
  readonly rows: readonly R[];
}

interface Listed<V, R> extends Viewed<V> {
  readonly onOffset: (offset: number) => void;
  /** All that match, for a file. */
  readonly all: () => Promise<readonly R[]>;
}

/** A list of which a part is followed: that which is in sight. `query`: filters and order. */
export function useList<R, V extends ListView<R>>(page: string, query: string): Listed<V, R> {
  const [asked, setAsked] = useState({ query, offset: 0 });
  if (asked.query !== query) setAsked({ query, offset: 0 });
  const viewed = useView<V>(address(page, query, asked.query === query ? asked.offset : 0));
  const onOffset = useCallback((offset: number) => setAsked({ query, offset }), [query]);
  const all = useCallback(async () => {
    const rows: R[] = [];
    for (;;) {
      const part = await ask<V>(address(page, query, rows.length));
      rows.push(...part.rows);
      if (part.rows.length === 0 || rows.length >= part.total) return rows;
    }
  }, [page, query]);
  return { ...viewed, onOffset, all };
}

function address(page: string, query: string, offset: number): string {
  return `${page}?${patched(query, { offset: offset > 0 ? String(offset) : null, limit: String(LIMIT) })}`;
}
