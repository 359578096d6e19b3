import type { GPUJob, GPUProject, GPUUsage } from '../src/kinds/types.ts';
import { before, job, project } from './build.ts';

/** Would be an element that runs a program if it were not written as text. */
export const EVIL = '<img src=x onerror="window.hacked = true">';

/** Others' words wherever an object has some. */
export const HOSTILE_JOB: GPUJob = job(`${EVIL}job`, {
  namespace: `${EVIL}namespace`,
  spec: { sweep: { algorithm: 'random', objective: { metric: `${EVIL}metric` } } },
  status: {
    phase: 'Failed',
    reason: `${EVIL}reason`,
    message: `${EVIL}message`,
    project: `${EVIL}project`,
    gpu: '1/1',
    podSummary: '1/0/1',
    node: `${EVIL}node`,
    firstFailure: `${EVIL}failure`,
    preemptedBy: `${EVIL}by`,
    placements: [
      { pod: `${EVIL}pod`, node: `${EVIL}node`, devices: [`${EVIL}device`], memoryMiB: 1 },
    ],
    advice: [{ rule: `${EVIL}rule`, message: `${EVIL}advice`, command: `${EVIL}command` }],
    conditions: [
      {
        type: `${EVIL}type`,
        status: 'False',
        lastTransitionTime: 'no time',
        reason: `${EVIL}why`,
        message: `${EVIL}condition`,
      },
    ],
    sweep: {
      trials: 3,
      counts: { succeeded: 1, failed: 1 },
      best: { trial: 0, value: 1 },
      top: [
        { trial: 0, value: 1, parameters: { [`${EVIL}name`]: `${EVIL}value`, constructor: '7' } },
        { trial: 1, value: 2 },
      ],
      errors: [{ trial: 2, state: `${EVIL}state`, message: `${EVIL}error` }],
    },
  },
});

export const HOSTILE_PROJECT: GPUProject = project(
  `${EVIL}project`,
  { quota: 1 },
  {
    allocatedGPU: EVIL,
    conditions: [
      {
        type: 'Accepted',
        status: 'False',
        lastTransitionTime: before(1),
        reason: 'Claimed',
        message: `${EVIL}problem`,
      },
    ],
  }
);

export const HOSTILE_USAGE: GPUUsage = {
  metadata: { name: 'current', namespace: `${EVIL}namespace` },
  status: {
    workloads: [
      {
        kind: `${EVIL}kind`,
        name: `${EVIL}name`,
        project: `${EVIL}project`,
        state: 'Running',
        gpus: 1,
        idleSince: 'never',
        advice: [{ rule: `${EVIL}rule`, message: '' }],
      },
    ],
  },
};
