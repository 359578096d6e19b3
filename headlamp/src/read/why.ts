import type { GPUJob } from '../kinds/types.ts';
import { count, counted, duration } from '../shared.ts';
import { phaseWords } from './job.ts';

/** A word and what it is; an empty one is not said. */
export type Fact = readonly [name: string, value: string];

/** Why a job waits, failed or is as it is: the operator's own sentence. */
export function whyWords({ status = {} }: GPUJob): string {
  if (status.message) return status.message;
  if (!status.phase) return 'The operator has not looked at it yet. Does it run?';
  if (status.phase === 'Running') return 'Its pods run, and none waits.';
  if (status.phase === 'Succeeded') return 'Every index has succeeded.';
  return phaseWords({ phase: status.phase, reason: status.reason ?? '' });
}

/** What else its object says. */
export function facts({ spec, status = {} }: GPUJob): readonly Fact[] {
  const said: Fact[] = [
    ['Project', status.project ?? ''],
    ['Type', spec.type ?? ''],
    ['GPU (held / asked for)', status.gpu ?? ''],
    ['Pods (run / done / in all)', status.podSummary ?? ''],
    ['Place in the queue', position(status.queuePosition)],
    ['Priority', spec.priority ? count(spec.priority) : ''],
    ['Suspended', spec.suspend ? 'by spec.suspend' : ''],
    ['Made room for', status.preemptedBy ?? ''],
    ['Evictions', evictions(status.evictions, status.lostGPUSeconds)],
    ['First failure', status.firstFailure ?? ''],
  ];
  return said.filter(([, value]) => value !== '');
}

function position(of: number | undefined): string {
  if (of === undefined) return '';
  return of === 1 ? 'next of its project' : `${count(of)} of its project`;
}

function evictions(many: number | undefined, lost: number | undefined): string {
  if (!many) return '';
  const words = counted(many, 'time');
  return lost ? `${words}, ${duration(lost)} of GPU time lost` : words;
}
