import { useMemo } from 'react';
import type { Listing } from '../read/listing.ts';
import { refusalOf } from '../read/refusal.ts';
import type { Kind } from './kinds.ts';

/** The objects of a kind, live; `namespaces`: of these alone, empty: of all. */
export function useListing<T>(kind: Kind, namespaces: readonly string[] = []): Listing<T> {
  const wanted = useMemo(
    () => (kind.isNamespaced && namespaces.length > 0 ? [...namespaces] : undefined),
    [kind, namespaces]
  );
  const [objects, error] = kind.useList(wanted ? { namespace: wanted } : {});
  const items = useMemo(
    () => objects?.map(({ jsonData }) => jsonData as unknown as T) ?? null,
    [objects]
  );
  if (!error) return { items, refusal: null };
  const refusal = refusalOf(error, {
    kind: kind.kind,
    plural: kind.apiName,
    namespaced: kind.isNamespaced,
    namespaces: error.namespace ? [error.namespace] : wanted ?? [],
    name: '',
  });
  return { items, refusal };
}
