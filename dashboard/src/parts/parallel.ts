import type { Ranked } from '../api/views.ts';
import { measured } from '../format/number.ts';
import { own } from '../format/own.ts';

/** An axis of parallel coordinates: where each trial crosses it, 0 (below) to 1, and its ends. */
export interface Axis {
  readonly name: string;
  readonly at: readonly (number | null)[];
  readonly low: string;
  readonly high: string;
}

/** An axis for each parameter, and the last for the objective. */
export function parallelAxes(top: readonly Ranked[], objective: string): Axis[] {
  const names = [...new Set(top.flatMap((row) => Object.keys(row.parameters)))];
  const axes = names.map((name) =>
    axis(
      name,
      top.map((row) => own(row.parameters, name) ?? null),
    ),
  );
  axes.push(
    axis(
      objective || 'value',
      top.map((row) => String(row.value)),
    ),
  );
  return axes;
}

function axis(name: string, values: readonly (string | null)[]): Axis {
  const there = values.filter((value) => value !== null);
  const numbers = there.map(Number);
  if (
    there.length > 0 &&
    there.every((value) => value.trim() !== '') &&
    numbers.every(Number.isFinite)
  ) {
    return measuredAxis(name, values, Math.min(...numbers), Math.max(...numbers));
  }
  const words = [...new Set(there)].sort();
  const place = (word: string) =>
    words.length > 1 ? words.indexOf(word) / (words.length - 1) : 0.5;
  return {
    name,
    at: values.map((value) => (value === null ? null : place(value))),
    low: words[0] ?? '',
    high: words.length > 1 ? (words.at(-1) ?? '') : '',
  };
}

/** Over more than two powers of ten by powers, as learning rates are searched. */
function measuredAxis(
  name: string,
  values: readonly (string | null)[],
  low: number,
  high: number,
): Axis {
  const byPowers = low > 0 && high / low > 100;
  const scale = byPowers ? Math.log : (value: number) => value;
  const width = scale(high) - scale(low);
  const place = (value: string) => (width > 0 ? (scale(Number(value)) - scale(low)) / width : 0.5);
  return {
    name,
    at: values.map((value) => (value === null ? null : place(value))),
    low: measured(low),
    high: high > low ? measured(high) : '',
  };
}
