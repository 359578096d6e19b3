import type { Ranked } from '../api/views.ts';
import type { State } from '../format/state.ts';

/** The states of trials, and the colour that the same means elsewhere. */
export const TRIALS: readonly (readonly [name: string, state: State | 'bad'])[] = [
  ['succeeded', 'busy'],
  ['running', 'part-unused'],
  ['waiting', 'free-in-pieces'],
  ['pruned', 'closed'],
  ['failed', 'bad'],
];

/** "412 succeeded, 8 running, 80 waiting". */
export function trialWords(counts: Readonly<Record<string, number>>): string {
  const said = TRIALS.filter(([name]) => counts[name]).map(
    ([name]) => `${counts[name] ?? 0} ${name}`,
  );
  return said.join(', ') || 'none yet';
}

/**
 * The best value by number of trial, each from the trial that found it. Of the best trials alone, so
 * true from the first of them on: what was best before is none of these.
 */
export function bestSoFar(
  top: readonly Ranked[],
  goal: string,
): readonly Pick<Ranked, 'trial' | 'value'>[] {
  const better = (a: number, b: number) => (goal === 'minimize' ? a < b : a > b);
  const found: Pick<Ranked, 'trial' | 'value'>[] = [];
  for (const { trial, value } of [...top].sort((a, b) => a.trial - b.trial)) {
    const before = found.at(-1);
    if (before === undefined || better(value, before.value)) found.push({ trial, value });
  }
  return found;
}
