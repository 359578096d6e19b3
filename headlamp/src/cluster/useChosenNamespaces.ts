import { useMemo } from 'react';
import { useSelector } from 'react-redux';

interface HeadlampState {
  readonly filter: { readonly namespaces: Iterable<string> };
}

/** Namespaces that the reader chose in Headlamp's filter; empty: all. */
export function useChosenNamespaces(): readonly string[] {
  const chosen = useSelector((state: HeadlampState) => state.filter.namespaces);
  return useMemo(() => [...chosen], [chosen]);
}
