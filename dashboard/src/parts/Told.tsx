import { useNow } from '../api/clock.ts';
import { told } from '../format/told.ts';

/** What the planner says of a workload, its moments in the reader's own zone. */
export function Told({ text }: { text: string }) {
  return useNow((now) => told(text, now));
}
