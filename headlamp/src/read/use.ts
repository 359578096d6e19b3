import type { GPUUsage, GPUUsageStatusWorkload } from '../kinds/types.ts';
import { moment } from './moment.ts';

/** What a workload does with its GPUs; ratios and MiB, null: not known. */
export interface UseLine {
  readonly namespace: string;
  readonly kind: string;
  readonly name: string;
  readonly project: string;
  readonly type: string;
  readonly running: boolean;
  readonly gpus: number;
  readonly busyNow: number | null;
  readonly busyMean: number | null;
  readonly memoryPeak: number | null;
  readonly memoryCap: number | null;
  readonly idleSince: number | null;
  readonly gpuHours: number | null;
  readonly usedGpuHours: number | null;
  /** The rule of its headline; empty: none. */
  readonly advice: string;
}

/** The object of a namespace; one of another name is the operator's own. */
const NAME = 'current';

/** Who holds and does not use comes first, then who holds most, then what has ended. */
export function linesOfUse(objects: readonly GPUUsage[]): readonly UseLine[] {
  const lines = objects
    .filter(({ metadata }) => metadata.name === NAME)
    .flatMap(({ metadata, status }) =>
      (status?.workloads ?? []).map(workload => lineOfUse(metadata.namespace ?? '', workload))
    );
  return lines.sort(
    (a, b) =>
      Number(b.running) - Number(a.running) ||
      Number(b.idleSince !== null) - Number(a.idleSince !== null) ||
      b.gpus - a.gpus
  );
}

/** Workloads that the objects leave out, as they would be too large. */
export function leftOut(objects: readonly GPUUsage[]): number {
  return objects.reduce((sum, { status }) => sum + (status?.omitted ?? 0), 0);
}

/** What is said of a GPUJob; one of the same name before it had another uid. */
export function workloadOf(
  objects: readonly GPUUsage[],
  job: { readonly namespace: string; readonly name: string; readonly uid: string }
): GPUUsageStatusWorkload | null {
  const there = objects.find(
    ({ metadata }) => metadata.name === NAME && metadata.namespace === job.namespace
  );
  const found = there?.status?.workloads?.find(
    ({ kind, name, uid }) => kind === 'GPUJob' && name === job.name && (uid ?? job.uid) === job.uid
  );
  return found ?? null;
}

/** `used` of what is held by those of known use, and what is held past its last kernel. */
export interface UseSum {
  readonly held: number;
  readonly idle: number;
  readonly idleWorkloads: number;
}

export function sumOfUse(lines: readonly UseLine[]): UseSum {
  const holding = lines.filter(line => line.running);
  const idle = holding.filter(line => line.idleSince !== null);
  return { held: sum(holding), idle: sum(idle), idleWorkloads: idle.length };
}

/** In thousandths, which shares are whole numbers of. */
function sum(lines: readonly UseLine[]): number {
  return lines.reduce((milli, line) => milli + Math.round(line.gpus * 1000), 0) / 1000;
}

function lineOfUse(namespace: string, of: GPUUsageStatusWorkload): UseLine {
  return {
    namespace,
    kind: of.kind,
    name: of.name,
    project: of.project ?? '',
    type: of.type ?? '',
    running: of.state === 'Running',
    gpus: of.gpus ?? 0,
    busyNow: ratio(of.busy?.now),
    busyMean: ratio(of.busy?.mean),
    memoryPeak: of.memoryMiB?.peak ?? null,
    memoryCap: of.memoryMiB?.cap ?? null,
    idleSince: moment(of.idleSince),
    gpuHours: hoursOf(of.gpuSeconds),
    usedGpuHours: hoursOf(of.usedGPUSeconds),
    advice: of.advice?.[0]?.rule ?? '',
  };
}

function ratio(percent: number | undefined): number | null {
  return percent === undefined ? null : percent / 100;
}

function hoursOf(seconds: number | undefined): number | null {
  return seconds === undefined ? null : seconds / 3600;
}
