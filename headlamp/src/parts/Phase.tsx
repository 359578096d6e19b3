import type { JobLine } from '../read/job.ts';
import { phaseWords } from '../read/job.ts';

/** Its phase, and in the product's words why it is so. */
export function Phase({ of }: { of: Pick<JobLine, 'phase' | 'reason'> }) {
  return <span className={of.phase === 'Failed' ? 'bad' : ''}>{phaseWords(of)}</span>;
}
