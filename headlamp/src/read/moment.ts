/** A time of the API in seconds; null: absent, or no time. */
export function moment(text: string | undefined): number | null {
  const at = Date.parse(text ?? '');
  return Number.isNaN(at) ? null : at / 1000;
}
