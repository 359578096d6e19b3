import type { Step } from '../api/views.ts';
import { own } from '../format/own.ts';

/** A stretch of a life: what began with `step`, until the next one or the end. */
export interface Stretch {
  readonly step: Step;
  readonly seconds: number;
  readonly state: 'free-in-pieces' | 'held' | 'busy' | 'closed' | 'bad';
}

const STATES: Readonly<Record<string, Stretch['state']>> = {
  submitted: 'free-in-pieces',
  waits: 'free-in-pieces',
  placed: 'held',
  runs: 'busy',
  suspended: 'closed',
};

/**
 * Steps with how long each lasted; `end`: now, or when it ended. What ends lasts no longer. That all
 * of it is placed is written down after its first pod runs: it goes on running.
 */
export function stretches(steps: readonly Step[], end: number): Stretch[] {
  return steps.map((step, index) => ({
    step,
    seconds: step.kind === 'ended' ? 0 : Math.max(0, (steps[index + 1]?.at ?? end) - step.at),
    state:
      step.kind === 'placed' && steps[index - 1]?.kind === 'runs'
        ? 'busy'
        : (own(STATES, step.kind) ?? 'free-in-pieces'),
  }));
}
