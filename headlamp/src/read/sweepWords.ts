import { count, counted, measured } from '../shared.ts';
import type { SweepLine } from './sweep.ts';

const GOES_ON = new Set(['', 'Pending', 'Running', 'Suspended']);

/** The first sentence of its page: how far it is, and its best trial. */
export function sweepWords(line: SweepLine): string {
  const { name, trials, counts, best, metric } = line;
  if (trials === null) return 'The operator has not looked at it yet.';
  const { succeeded = 0, pruned = 0, failed = 0 } = counts;
  const soFar = GOES_ON.has(line.phase) ? 'so far ' : '';
  const ended = `${name} has ${soFar}ended ${count(succeeded + pruned + failed)} of ${counted(
    trials,
    'trial'
  )}.`;
  if (!best) return `${ended} None has a result yet.`;
  return `${ended} Best: trial ${best.trial} with ${metric || 'objective'} ${measured(
    best.value
  )}.`;
}
