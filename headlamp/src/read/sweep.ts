import type { GPUJob, GPUJobStatusSweepTop } from '../kinds/types.ts';
import { own } from '../shared.ts';
import { moment } from './moment.ts';

/** A search: a GPUJob whose pods are trials. */
export interface SweepLine {
  readonly namespace: string;
  readonly name: string;
  readonly project: string;
  readonly phase: string;
  readonly reason: string;
  readonly algorithm: string;
  /** What is made small or large; empty: nothing is. */
  readonly metric: string;
  readonly goal: string;
  /** In all; null: not known yet. */
  readonly trials: number | null;
  /** By state, as the strip shows them. */
  readonly counts: Readonly<Record<string, number>>;
  readonly best: Ranked | null;
  readonly created: number | null;
}

/** A trial that succeeded. */
export interface Ranked {
  readonly trial: number;
  readonly value: number;
  readonly parameters: Readonly<Record<string, string>>;
}

/** A trial that failed, or gave no usable result. */
export interface Failed {
  readonly trial: number;
  readonly state: string;
  readonly message: string;
}

/** The searches among jobs, the newest first. */
export function sweepLines(jobs: readonly GPUJob[]): readonly SweepLine[] {
  return jobs
    .filter(({ spec }) => spec.sweep !== undefined)
    .map(sweepLine)
    .sort((a, b) => (b.created ?? 0) - (a.created ?? 0));
}

export function sweepLine({ metadata, spec, status = {} }: GPUJob): SweepLine {
  const { sweep } = status;
  const objective = spec.sweep?.objective;
  return {
    namespace: metadata.namespace ?? '',
    name: metadata.name,
    project: status.project ?? '',
    phase: status.phase ?? '',
    reason: status.reason ?? '',
    algorithm: spec.sweep?.algorithm ?? '',
    metric: objective?.metric ?? '',
    goal: objective ? objective.goal ?? 'minimize' : '',
    trials: sweep?.trials ?? null,
    counts: sweep ? countsOf(sweep) : {},
    best: sweep?.best ? ranked(sweep.best) : null,
    created: moment(metadata.creationTimestamp),
  };
}

/** The best trials, the best first. */
export function topOf({ status }: GPUJob): readonly Ranked[] {
  return (status?.sweep?.top ?? []).map(ranked);
}

export function errorsOf({ status }: GPUJob): readonly Failed[] {
  return (status?.sweep?.errors ?? []).map(({ trial, state, message = '' }) => ({
    trial,
    state,
    message,
  }));
}

/** Names of the parameters of some trials, in the order in which they are met. */
export function parameterNames(trials: readonly Ranked[]): readonly string[] {
  return [...new Set(trials.flatMap(({ parameters }) => Object.keys(parameters)))];
}

/** A parameter of a trial; names are others' words, and `constructor` may be one. */
export function parameter(of: Ranked, name: string): string {
  return own(of.parameters, name) ?? '–';
}

/** "least" or "most": which objective is the best. */
export function bestWord(goal: string): string {
  return goal === 'maximize' ? 'most' : 'least';
}

type Sweep = NonNullable<NonNullable<GPUJob['status']>['sweep']>;

function countsOf({ trials, counts }: Sweep): Readonly<Record<string, number>> {
  const { running = 0, succeeded = 0, pruned = 0 } = counts;
  const { failed = 0, resultMissing = 0, objectiveNotFinite = 0 } = counts;
  const failures = failed + resultMissing + objectiveNotFinite;
  const waiting = Math.max(0, trials - running - succeeded - pruned - failures);
  return { waiting, running, succeeded, pruned, failed: failures };
}

function ranked({ trial, value, parameters = {} }: GPUJobStatusSweepTop): Ranked {
  return { trial, value, parameters };
}
