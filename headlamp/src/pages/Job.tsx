import { SectionBox } from '@kinvolk/headlamp-plugin/lib/CommonComponents';
import type { GPUJob, GPUNode, GPUUsage } from '../kinds/types.ts';
import { AdviceList } from '../parts/AdviceList.tsx';
import { Command } from '../parts/Command.tsx';
import { Conditions } from '../parts/Conditions.tsx';
import { Facts } from '../parts/Facts.tsx';
import { Held } from '../parts/Held.tsx';
import { JobLink } from '../parts/JobLink.tsx';
import { OnePage } from '../parts/OnePage.tsx';
import { Phase } from '../parts/Phase.tsx';
import { Used } from '../parts/Used.tsx';
import { heldLines } from '../read/held.ts';
import { jobLine } from '../read/job.ts';
import type { Found, Listing } from '../read/listing.ts';
import { workloadOf } from '../read/use.ts';
import { facts, whyWords } from '../read/why.ts';

interface Props {
  readonly name: string;
  readonly job: Found<GPUJob>;
  /** Of its namespace. */
  readonly usage: Listing<GPUUsage>;
  /** For the names of GPUs; who may not read them sees their ids. */
  readonly nodes: Listing<GPUNode>;
}

/** Why a job waits or failed, what it holds, and what it does with it. */
export function Job({ name, job, usage, nodes }: Props) {
  return (
    <OnePage title={name} found={job}>
      {item => <Parts job={item} usage={usage} nodes={nodes.items ?? []} />}
    </OnePage>
  );
}

function Parts({
  job,
  usage,
  nodes,
}: {
  job: GPUJob;
  usage: Listing<GPUUsage>;
  nodes: readonly GPUNode[];
}) {
  const line = jobLine(job);
  const held = heldLines(job, nodes);
  const conditions = job.status?.conditions ?? [];
  const workload = workloadOf(usage.items ?? [], { ...line, uid: job.metadata.uid ?? '' });
  const advice = job.status?.advice ?? workload?.advice ?? [];
  return (
    <>
      <SectionBox title={`${line.namespace} / ${line.name}`} backLink>
        <p>
          <b>
            <Phase of={line} />
          </b>
        </p>
        <p className="lead">{whyWords(job)}</p>
        <Facts facts={facts(job)} />
        {line.sweep && (
          <p>
            Its trials: <JobLink of={line} sweep />
          </p>
        )}
      </SectionBox>
      {advice.length > 0 && (
        <SectionBox title="What to change">
          <AdviceList advice={advice} />
        </SectionBox>
      )}
      {held.length > 0 && (
        <SectionBox title="What it holds">
          <Held lines={held} />
        </SectionBox>
      )}
      <Used job={job} workload={workload} refusal={usage.refusal} />
      {conditions.length > 0 && (
        <SectionBox title="Conditions">
          <Conditions of={conditions} />
        </SectionBox>
      )}
      <SectionBox title="By kubectl">
        <Command line={`kubectl gpu why ${line.name} -n ${line.namespace}`} />
        <Command line={`kubectl gpu logs ${line.name} -n ${line.namespace}`} />
      </SectionBox>
    </>
  );
}
