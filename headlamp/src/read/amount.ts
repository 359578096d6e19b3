/** A decimal string of the API, such as "1.5"; null: absent, or no number. */
export function amount(text: string | undefined): number | null {
  if (text === undefined || text.trim() === '') return null;
  const value = Number(text);
  return Number.isFinite(value) ? value : null;
}
