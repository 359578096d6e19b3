import { gpus } from './number.ts';

/** GPUs of a project, as its bar shows them; `limit` null: none. */
export interface Bounds {
  readonly quota: number;
  readonly limit: number | null;
  readonly held: number;
  /** Of these above the quota. */
  readonly borrowed: number;
}

/** Where the parts of a bar end, in percent of its width; what is borrowed begins at `own`. */
export interface QuotaParts {
  readonly limit: number;
  readonly own: number;
  readonly held: number;
  readonly quota: number;
}

/** How far the bars of some projects go, in GPUs. */
export function mostOf(rows: readonly Omit<Bounds, 'borrowed'>[]): number {
  return Math.max(1, ...rows.flatMap((row) => [row.held, row.quota, row.limit ?? 0]));
}

/** `most`: GPUs at the right end. */
export function quotaParts(row: Bounds, most: number): QuotaParts {
  const scale = (count: number) => (100 * Math.min(count, most)) / (most || 1);
  return {
    limit: scale(row.limit ?? most),
    own: scale(row.held - row.borrowed),
    held: scale(row.held),
    quota: scale(row.quota),
  };
}

/** The bar in words. */
export function quotaWords(row: Bounds): string {
  const limit = row.limit === null ? 'no limit' : `limit ${gpus(row.limit)}`;
  return `${gpus(row.held)} held, quota ${gpus(row.quota)}, ${limit}`;
}
