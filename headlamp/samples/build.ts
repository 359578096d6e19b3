import type { GPUJob, GPUJobStatus, GPUProject, GPUProjectStatus } from '../src/kinds/types.ts';

/** When the samples are looked at. */
export const NOW = Date.parse('2026-03-12T14:14:00Z');

/** A time so long before that. */
export function before(minutes: number): string {
  return new Date(NOW - minutes * 60_000).toISOString();
}

interface Job {
  readonly namespace?: string;
  readonly minutes?: number;
  readonly spec?: Partial<GPUJob['spec']>;
  readonly status?: GPUJobStatus;
}

/** A GPUJob as the API server has it. */
export function job(name: string, of: Job = {}): GPUJob {
  const { namespace = 'vision', minutes = 60, spec = {}, status } = of;
  const metadata = {
    name,
    namespace,
    uid: `uid-of-${name}`,
    creationTimestamp: before(minutes),
  };
  const wanted = { type: 'training' as const, ...spec };
  return status ? { metadata, spec: wanted, status } : { metadata, spec: wanted };
}

/** A GPUProject as the API server has it. */
export function project(
  name: string,
  spec: Omit<GPUProject['spec'], 'namespaces'>,
  status?: GPUProjectStatus
): GPUProject {
  const made = { metadata: { name }, spec: { namespaces: [name], ...spec } };
  return status ? { ...made, status } : made;
}
