/** The parameters of a page that a view is asked with, in one order: the same question, one address. */
export function pick(query: URLSearchParams, names: readonly string[]): string {
  const picked = new URLSearchParams();
  for (const name of names) {
    const value = query.get(name);
    if (value) picked.set(name, value);
  }
  return picked.toString();
}
