import type { Refusal } from './refusal.ts';

/** What the API server says of a kind. Neither: it has not answered yet. */
export interface Listing<T> {
  readonly items: readonly T[] | null;
  readonly refusal: Refusal | null;
}

/** The same of one object. */
export interface Found<T> {
  readonly item: T | null;
  readonly refusal: Refusal | null;
}
