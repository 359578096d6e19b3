import type { JobRow, WorkRef } from '../api/views.ts';

const segment = encodeURIComponent;

/** The page of a workload. */
export function jobPath(ref: WorkRef): string {
  return `/jobs/${segment(ref.namespace)}/${segment(ref.kind)}/${segment(ref.name)}`;
}

/** The page of a search. */
export function sweepPath(ref: WorkRef): string {
  return `/sweeps/${segment(ref.namespace)}/${segment(ref.name)}`;
}

export function projectPath(name: string): string {
  return `/projects/${segment(name)}`;
}

export function devicePath(node: string, index: number): string {
  return `/gpus/${segment(node)}/${index}`;
}

/** A workload in one word of an address, for two side by side. */
export function refWord(ref: WorkRef): string {
  return `${ref.namespace}/${ref.kind}/${ref.name}`;
}

/** What `refWord` made; null: it is none. */
export function parseRef(word: string): WorkRef | null {
  const [namespace, kind, name, ...rest] = word.split('/');
  if (!namespace || !kind || !name || rest.length > 0) return null;
  return { namespace, kind, name };
}

export function sameRef(a: WorkRef | null, b: WorkRef | null): boolean {
  return !!a && !!b && a.namespace === b.namespace && a.kind === b.kind && a.name === b.name;
}

/** How many of its pods are where: "2 of 4 pods run". */
export function podWords(row: Pick<JobRow, 'running' | 'succeeded' | 'pods'>): string {
  const all = row.pods === 1 ? 'pod' : 'pods';
  const run = row.pods === 1 ? 'runs' : 'run';
  if (row.running > 0 || row.succeeded === 0) return `${row.running} of ${row.pods} ${all} ${run}`;
  return `${row.succeeded} of ${row.pods} ${all} succeeded`;
}
