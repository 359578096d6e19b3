const FIRST = 1;
const MOST = 30;

/**
 * Seconds until the next try: 1, 2, 4, … 30, each up to a fifth less, so that many pages that lost
 * the same server do not come back at the same moment. `random`: 0 to 1.
 */
export function backoff(failures: number, random: number): number {
  const whole = Math.min(MOST, FIRST * 2 ** Math.max(0, failures - 1));
  return whole * (1 - random / 5);
}
