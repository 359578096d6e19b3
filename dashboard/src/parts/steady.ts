export interface Steady<T> {
  /** The rows in the order in which they are shown. */
  readonly rows: readonly T[];
  readonly keys: readonly string[];
  /** Those that were not there before. */
  readonly fresh: ReadonlySet<string>;
  /** Whether the server would have them in another order by now. */
  readonly moved: boolean;
}

/**
 * Rows that keep their place while they refresh: those that were there stay in their order, what is
 * gone goes, and what is new comes after the row that the server has before it.
 */
export function steady<T>(
  before: readonly string[],
  next: readonly T[],
  keyOf: (row: T) => string,
): Steady<T> {
  const byKey = new Map(next.map((row) => [keyOf(row), row]));
  const known = new Set(before);
  const keys = before.filter((key) => byKey.has(key));
  const fresh = new Set<string>();
  let previous: string | null = null;
  for (const row of next) {
    const key = keyOf(row);
    if (!known.has(key) && !fresh.has(key)) {
      keys.splice(previous === null ? 0 : keys.indexOf(previous) + 1, 0, key);
      fresh.add(key);
    }
    previous = key;
  }
  const rows = keys.map((key) => byKey.get(key)).filter((row) => row !== undefined);
  const moved = rows.some((row, index) => row !== next[index]);
  return { rows, keys, fresh, moved };
}
