import type { GPUJob } from '../kinds/types.ts';
import { moment } from './moment.ts';

/** A GPUJob in the list: what `kubectl get gpujobs` prints, with the sentence. */
export interface JobLine {
  readonly namespace: string;
  readonly name: string;
  readonly project: string;
  readonly type: string;
  /** Empty: the operator has not looked at it yet. */
  readonly phase: string;
  readonly reason: string;
  readonly message: string;
  /** GPUs, or GPU memory, held / asked for. */
  readonly gpu: string;
  /** Running / succeeded / in all. */
  readonly pods: string;
  readonly node: string;
  readonly created: number | null;
  readonly sweep: boolean;
}

export function jobLine({ metadata, spec, status = {} }: GPUJob): JobLine {
  return {
    namespace: metadata.namespace ?? '',
    name: metadata.name,
    project: status.project ?? '',
    type: spec.type ?? '',
    phase: status.phase ?? '',
    reason: status.reason ?? '',
    message: status.message ?? '',
    gpu: status.gpu ?? '',
    pods: status.podSummary ?? '',
    node: status.node ?? '',
    created: moment(metadata.creationTimestamp),
    sweep: spec.sweep !== undefined,
  };
}

const URGENT = ['Pending', 'Running', 'Suspended', 'Failed', 'Succeeded'];

/** What waits, then what runs, then what has ended; of these the newest first. */
export function inOrder(lines: readonly JobLine[]): readonly JobLine[] {
  const rank = (line: JobLine) => URGENT.indexOf(line.phase);
  return [...lines].sort((a, b) => rank(a) - rank(b) || (b.created ?? 0) - (a.created ?? 0));
}

/** "Pending · WaitingForQuota"; a reason that says the phase again is left out. */
export function phaseWords(line: Pick<JobLine, 'phase' | 'reason'>): string {
  if (!line.phase) return 'not looked at yet';
  return line.reason && line.reason !== line.phase ? `${line.phase} · ${line.reason}` : line.phase;
}
