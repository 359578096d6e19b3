import { SectionBox } from '@kinvolk/headlamp-plugin/lib/CommonComponents';
import type { GPUJob, GPUUsageStatusWorkload } from '../kinds/types.ts';
import { moment } from '../read/moment.ts';
import type { Refusal } from '../read/refusal.ts';
import { usedInAll, usedNow } from '../read/used.ts';
import { Age } from './Age.tsx';
import { Facts } from './Facts.tsx';

interface Props {
  readonly job: GPUJob;
  /** Null: no GPUUsage speaks of it. */
  readonly workload: GPUUsageStatusWorkload | null;
  readonly refusal: Refusal | null;
}

/** What a job does with its GPUs, or did; nothing of one that never held any. */
export function Used({ job, workload, refusal }: Props) {
  const ended = job.status?.usage;
  if (ended) {
    return (
      <SectionBox title="What it did with them">
        <Facts facts={usedInAll(ended)} />
      </SectionBox>
    );
  }
  if (workload) {
    const idle = moment(workload.idleSince);
    return (
      <SectionBox title="What it does with them">
        {idle !== null && (
          <p className="bad">
            No kernel of it has run for <Age at={idle} />.
          </p>
        )}
        <Facts facts={usedNow(workload)} />
      </SectionBox>
    );
  }
  if (!job.status?.placements?.length) return null;
  return (
    <SectionBox title="What it does with them">
      <p>
        {refusal
          ? refusal.words
          : 'Not known: no agent has told, or none is asked (agent.history.enabled of the chart).'}
      </p>
    </SectionBox>
  );
}
