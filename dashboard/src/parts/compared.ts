import type { JobView } from '../api/views.ts';
import { duration } from '../format/duration.ts';
import { gpus, hours, memory, percent } from '../format/number.ts';
import { type Stretch, stretches } from './life.ts';

/** One quantity of two jobs; null: not known. */
export interface Compared {
  readonly what: string;
  readonly a: string | null;
  readonly b: string | null;
}

type Say = (job: JobView, now: number) => string | null;

const maybe = <T>(value: T | null | undefined, say: (value: T) => string) =>
  value === null || value === undefined ? null : say(value);

/**
 * Seconds that a job spent in a state; null: not known. Of a search each trial has its own life, and
 * of what has ended its start is known only while its pods are there.
 */
export function spent(job: JobView, state: Stretch['state'], now: number): number | null {
  const all = stretches(job.steps, job.row.ended ?? now);
  const lost = job.row.ended !== null && all.every((each) => each.state !== 'busy');
  if (job.row.sweep || lost) return null;
  return all.filter((each) => each.state === state).reduce((sum, { seconds }) => sum + seconds, 0);
}

const QUANTITIES: readonly (readonly [string, Say])[] = [
  ['phase', (job) => job.row.phase],
  ['GPUs asked for', (job) => gpus(job.row.asked)],
  ['type', (job) => job.row.type || 'any'],
  ['waited', (job, now) => maybe(spent(job, 'free-in-pieces', now), duration)],
  ['ran', (job, now) => maybe(spent(job, 'busy', now), duration)],
  ['GPU-hours held', (job) => maybe(job.used?.gpuHours, hours)],
  ['GPU-hours used', (job) => maybe(job.used?.usedGpuHours, hours)],
  ['GPU-hours idle', (job) => maybe(job.used?.idleGpuHours, hours)],
  ['use on average, of its devices’ time', (job) => maybe(job.used?.mean, percent)],
  ['most memory at once', (job) => maybe(job.used?.peakMib, memory)],
  ['cap of memory', (job) => maybe(job.used?.capMib, memory)],
  ['advice', (job) => job.advice.map((each) => each.rule).join(', ') || 'none'],
];

export function compared(a: JobView, b: JobView, now: number): Compared[] {
  return QUANTITIES.map(([what, say]) => ({ what, a: say(a, now), b: say(b, now) }));
}
