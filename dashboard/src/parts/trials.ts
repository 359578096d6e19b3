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
