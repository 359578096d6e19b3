import type { GPUProject } from '../kinds/types.ts';
import type { Bounds } from '../shared.ts';
import { amount } from './amount.ts';

/** A project in the list, in GPUs; null: its status does not say. */
export interface ProjectLine extends Bounds {
  readonly name: string;
  readonly namespaces: readonly string[];
  readonly fairShare: number | null;
  readonly pending: number | null;
  readonly running: number | null;
  readonly waiting: number | null;
  /** Whether its status says what it holds; else `held` is 0. */
  readonly known: boolean;
  /** What is wrong with the object; empty: nothing. */
  readonly problem: string;
}

export function projectLine({ metadata, spec, status = {} }: GPUProject): ProjectLine {
  const held = amount(status.allocatedGPU);
  return {
    name: metadata.name,
    namespaces: spec.namespaces,
    quota: spec.quota,
    limit: spec.limit ?? null,
    held: held ?? 0,
    borrowed: amount(status.borrowedGPU) ?? 0,
    fairShare: amount(status.fairShareGPU),
    pending: amount(status.pendingGPU),
    running: status.jobs?.running ?? null,
    waiting: status.jobs?.pending ?? null,
    known: held !== null,
    problem: (status.conditions ?? []).filter(isWrong).map(words).join(' '),
  };
}

type Condition = NonNullable<NonNullable<GPUProject['status']>['conditions']>[number];

/** These are well when they are False; all others when they are True. */
const WELL_WHEN_FALSE = new Set(['SetAside']);

function isWrong({ type, status }: Condition): boolean {
  return status === (WELL_WHEN_FALSE.has(type) ? 'True' : 'False');
}

function words({ reason, message }: Condition): string {
  return message || reason;
}
