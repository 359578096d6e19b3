export interface Asked {
  readonly [name: string]: string | undefined;
}

/** A parameter that the server does not know. */
export class BadQuestion extends Error {}

/** A part of some rows, as the server gives it: filtered, in order, at most 200 at a time. */
export function listed<R extends object>(
  rows: readonly R[],
  asked: Asked,
  sorts: readonly string[],
  words: (row: R) => string,
): { total: number; offset: number; rows: R[] } {
  const sort = asked['sort'] ?? '';
  if (sort && !sorts.includes(sort))
    throw new BadQuestion(`sort: ${sort} is none of ${sorts.join(', ')}`);
  const wanted = (asked['q'] ?? '').toLowerCase();
  const fits = (row: R) =>
    (!wanted || words(row).toLowerCase().includes(wanted)) &&
    (!asked['idle'] || (row as { idleSince?: number | null }).idleSince !== null) &&
    ['project', 'phase', 'reason', 'type', 'advice'].every((name) => {
      const value = asked[name];
      return !value || (row as Record<string, unknown>)[name] === value;
    });
  const found = ordered(rows.filter(fits), sort);
  const offset = Math.min(Number(asked['offset'] ?? 0), found.length);
  const limit = Math.min(200, Number(asked['limit'] ?? 100));
  return { total: found.length, offset, rows: found.slice(offset, offset + limit) };
}

function ordered<R extends object>(rows: R[], sort: string): R[] {
  if (!sort) return rows;
  const down = sort.startsWith('-');
  const field = down ? sort.slice(1) : sort;
  const value = (row: R): unknown => {
    if (field === 'name') return (row as { ref?: { name: string } }).ref?.name;
    const found = (row as Record<string, unknown>)[field];
    return found;
  };
  return rows.sort((a, b) => {
    const [one, other] = [value(a) ?? null, value(b) ?? null];
    if (one === null || other === null) return Number(one === null) - Number(other === null);
    const order =
      typeof one === 'number' && typeof other === 'number'
        ? one - other
        : JSON.stringify(one).localeCompare(JSON.stringify(other));
    return down ? -order : order;
  });
}
