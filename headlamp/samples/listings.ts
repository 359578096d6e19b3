import type { Found, Listing } from '../src/read/listing.ts';
import { type Asked, refusalOf } from '../src/read/refusal.ts';

export const LIST: Asked = {
  kind: 'GPUJob',
  plural: 'gpujobs',
  namespaced: true,
  namespaces: [],
  name: '',
};

export function listed<T>(items: readonly T[]): Listing<T> {
  return { items, refusal: null };
}

/** Not answered yet. */
export const ASKED: Listing<never> = { items: null, refusal: null };

export function found<T>(item: T): Found<T> {
  return { item, refusal: null };
}

/** As the API server refuses: 403 no right, 404 no such kind. */
export function refused(status: number, asked: Partial<Asked> = {}): Listing<never> & Found<never> {
  const refusal = refusalOf({ status, message: '' }, { ...LIST, ...asked });
  return { items: null, item: null, refusal };
}
