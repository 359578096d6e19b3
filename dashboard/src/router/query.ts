import { useCallback, useMemo } from 'react';

import { go, useAddress } from './address.ts';

export type Patch = Readonly<Record<string, string | null>>;

/** A query with some parameters changed; null or empty takes one away. */
export function patched(query: string, patch: Patch): string {
  const params = new URLSearchParams(query);
  for (const [name, value] of Object.entries(patch)) {
    if (value === null || value === '') params.delete(name);
    else params.set(name, value);
  }
  return params.toString();
}

/** The parameters of the page, and a function that changes some of them in place. */
export function useQuery(): [URLSearchParams, (patch: Patch) => void] {
  const { path, query } = useAddress();
  const params = useMemo(() => new URLSearchParams(query), [query]);
  const set = useCallback(
    (patch: Patch) => {
      const next = patched(query, patch);
      go(next ? `${path}?${next}` : path, { replace: true });
    },
    [path, query],
  );
  return [params, set];
}
