const NBSP = '\u00a0';
const STEPS: readonly [string, number][] = [
  ['d', 86_400],
  ['h', 3_600],
  ['min', 60],
  ['s', 1],
];

/**
 * A span of time in at most two steps that follow each other: "2 h 10 min", "9 h 04 min", "38 s".
 * What is below zero is none: clocks differ.
 */
export function duration(seconds: number): string {
  const left = Math.max(0, Math.floor(seconds));
  const index = STEPS.findIndex(([, size]) => left >= size);
  const step = STEPS[index];
  if (!step) return `0${NBSP}s`;
  const [unit, size] = step;
  const whole = Math.floor(left / size);
  const first = `${whole}${NBSP}${unit}`;
  const next = STEPS[index + 1];
  if (!next || (unit === 'min' && whole >= 10)) return first;
  const rest = Math.floor((left - whole * size) / next[1]);
  if (rest === 0) return first;
  return `${first} ${String(rest).padStart(2, '0')}${NBSP}${next[0]}`;
}
