import type { PartRow } from '../api/views.ts';
import { duration } from './duration.ts';

export type State = PartRow['state'];

/** What a state of GPUs is called beneath the strip. */
export function stateWords(state: State, idleSeconds: number): string {
  switch (state) {
    case 'busy':
      return 'busy';
    case 'part-unused':
      return 'allocated, in part unused';
    case 'idle':
      return `held idle over ${duration(idleSeconds)}`;
    case 'unknown':
      return 'allocated, use not known';
    case 'neighbours':
      return 'held by pods of others';
    case 'free-in-pieces':
      return 'free in pieces';
    case 'free':
      return 'free';
    case 'closed':
      return 'closed';
  }
}
