import { SectionBox, SimpleTable } from '@kinvolk/headlamp-plugin/lib/CommonComponents';
import { useMemo } from 'react';
import type { GPUJob } from '../kinds/types.ts';
import type { Column } from '../parts/column.ts';
import { Command } from '../parts/Command.tsx';
import { JobLink } from '../parts/JobLink.tsx';
import { Nothing } from '../parts/Nothing.tsx';
import { OnePage } from '../parts/OnePage.tsx';
import { Phase } from '../parts/Phase.tsx';
import { Rows } from '../parts/Rows.tsx';
import { TrialStrip } from '../parts/TrialStrip.tsx';
import type { Found } from '../read/listing.ts';
import {
  bestWord,
  errorsOf,
  type Failed,
  parameter,
  parameterNames,
  type Ranked,
  type SweepLine,
  sweepLine,
  topOf,
} from '../read/sweep.ts';
import { sweepWords } from '../read/sweepWords.ts';
import { measured } from '../shared.ts';

/** One search: how far it is, the best that it found, and what failed last. */
export function Sweep({ name, job }: { name: string; job: Found<GPUJob> }) {
  return (
    <OnePage title={name} found={job}>
      {item => <Parts job={item} />}
    </OnePage>
  );
}

function Parts({ job }: { job: GPUJob }) {
  const line = sweepLine(job);
  const errors = errorsOf(job);
  return (
    <>
      <SectionBox title={`${line.namespace} / ${line.name}`} backLink>
        <p>
          <b>
            <Phase of={line} />
          </b>
        </p>
        <p className="lead">{sweepWords(line)}</p>
        <TrialStrip counts={line.counts} />
        {job.status?.sweep?.lostResults && <p className="bad">{job.status.sweep.lostResults}</p>}
        <p>
          Why it is so, and what it holds: <JobLink of={line} />
        </p>
      </SectionBox>
      <SectionBox
        title={line.metric ? `The best ten, ${bestWord(line.goal)} ${line.metric} first` : 'Trials'}
      >
        <Top line={line} trials={topOf(job)} />
      </SectionBox>
      {errors.length > 0 && (
        <SectionBox title="What failed last">
          <SimpleTable
            columns={[
              { label: 'Trial', gridTemplate: 'auto', getter: (row: Failed) => row.trial },
              { label: 'How', gridTemplate: 'auto', getter: (row: Failed) => row.state },
              { label: 'Why', gridTemplate: '4fr', getter: (row: Failed) => row.message },
            ]}
            data={[...errors]}
          />
        </SectionBox>
      )}
      <SectionBox title="All trials, by kubectl">
        <Command line={`kubectl gpu sweep trials ${line.name} -n ${line.namespace}`} />
      </SectionBox>
    </>
  );
}

function Top({ line, trials }: { line: SweepLine; trials: readonly Ranked[] }) {
  const columns = useMemo(() => columnsOf(line.metric, trials), [line.metric, trials]);
  if (trials.length === 0) return <Nothing words="No trial has succeeded yet." />;
  return <Rows columns={columns} rows={trials} />;
}

function columnsOf(metric: string, trials: readonly Ranked[]): readonly Column<Ranked>[] {
  return [
    { key: 'trial', head: 'Trial', width: '0.5fr', value: row => row.trial },
    {
      key: 'value',
      head: metric || 'Objective',
      value: row => row.value,
      cell: row => <b>{measured(row.value)}</b>,
    },
    ...parameterNames(trials).map(
      (name): Column<Ranked> => ({
        key: `parameter ${name}`,
        head: name,
        value: row => parameter(row, name),
      })
    ),
  ];
}
