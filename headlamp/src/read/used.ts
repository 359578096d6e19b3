import type { GPUJobStatusUsage, GPUUsageStatusWorkload } from '../kinds/types.ts';
import { hours, memory, percent } from '../shared.ts';
import type { Fact } from './why.ts';

const UNKNOWN = '–';

/** What a job that holds GPUs does with them. */
export function usedNow(of: GPUUsageStatusWorkload): readonly Fact[] {
  const { busy = {}, memoryMiB = {} } = of;
  return [
    ['Busy now', ratio(busy.now)],
    ['Busy since it began', ratio(busy.mean)],
    ['Half of the time at most', ratio(busy.p50)],
    ['95 % of the time at most', ratio(busy.p95)],
    ['Most memory of its cap', peak(memoryMiB.peak, memoryMiB.cap)],
    ['GPU-hours used of those held', used(of.usedGPUSeconds, of.gpuSeconds)],
  ];
}

/** What one that has ended did with them. */
export function usedInAll(of: GPUJobStatusUsage): readonly Fact[] {
  return [
    ['Busy while it held GPUs', ratio(of.meanPercent)],
    ['Half of the time at most', ratio(of.p50Percent)],
    ['95 % of the time at most', ratio(of.p95Percent)],
    ['Most memory of its cap', peak(of.peakMiB, of.capMiB)],
    ['GPU-hours used of those held', used(of.usedGPUSeconds, of.gpuSeconds)],
  ];
}

function ratio(of: number | undefined): string {
  return of === undefined ? UNKNOWN : percent(of / 100);
}

function peak(most: number | undefined, cap: number | undefined): string {
  if (most === undefined) return UNKNOWN;
  return cap === undefined ? memory(most) : `${memory(most)} of ${memory(cap)}`;
}

function used(some: number | undefined, all: number | undefined): string {
  const part = some === undefined ? UNKNOWN : hours(some / 3600);
  return all === undefined ? part : `${part} of ${hours(all / 3600)}`;
}
