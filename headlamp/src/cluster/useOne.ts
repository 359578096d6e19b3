import type { Found } from '../read/listing.ts';
import { refusalOf } from '../read/refusal.ts';
import type { Kind } from './kinds.ts';

/** One object of a kind with namespaces, live. */
export function useOne<T>(kind: Kind, namespace: string, name: string): Found<T> {
  const [object, error] = kind.useGet(name, namespace);
  if (!error) return { item: object ? (object.jsonData as unknown as T) : null, refusal: null };
  const refusal = refusalOf(error, {
    kind: kind.kind,
    plural: kind.apiName,
    namespaced: true,
    namespaces: [namespace],
    name,
  });
  return { item: null, refusal };
}
