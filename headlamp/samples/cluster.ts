import type { GPUJob, GPUNode, GPUProject, GPUUsage } from '../src/kinds/types.ts';
import { before, job, project } from './build.ts';

const A100 = { model: 'NVIDIA A100-PCIE-40GB', memoryMiB: 40960, usableMiB: 40326 };

/** A search of which some trials have ended. */
export const SEARCH: GPUJob = job('hpo-sweep', {
  minutes: 190,
  spec: {
    sweep: { algorithm: 'tpe', objective: { metric: 'val_loss', goal: 'minimize' } },
  },
  status: {
    phase: 'Running',
    project: 'vision',
    gpu: '2/2',
    podSummary: '8/38/60',
    node: 'dell-2',
    sweep: {
      trials: 60,
      counts: { running: 8, succeeded: 31, pruned: 5, failed: 1, resultMissing: 1 },
      best: { trial: 23, value: 0.1834, parameters: { lr: '0.0007', batch: '64', opt: 'adamw' } },
      top: [
        { trial: 23, value: 0.1834, parameters: { lr: '0.0007', batch: '64', opt: 'adamw' } },
        { trial: 30, value: 0.1871, parameters: { lr: '0.0009', batch: '64', opt: 'adamw' } },
        { trial: 11, value: 0.1902, parameters: { lr: '0.0011', batch: '128', opt: 'adamw' } },
        { trial: 4, value: 0.2127, parameters: { lr: '0.0031', batch: '128', opt: 'sgd' } },
      ],
      errors: [
        { trial: 17, state: 'ResultMissing', message: 'its program wrote no result' },
        { trial: 9, state: 'Failed', message: 'main ended with exit code 1: CUDA out of memory' },
      ],
    },
  },
});

/** One that runs, with all that its status says. */
export const RUNNING: GPUJob = job('bert-finetune', {
  minutes: 310,
  spec: { priority: 50 },
  status: {
    phase: 'Running',
    project: 'vision',
    gpu: '0.5/0.5',
    podSummary: '1/0/1',
    node: 'dell-1',
    evictions: 2,
    lostGPUSeconds: 1320,
    placements: [
      {
        pod: 'bert-finetune-0-x7p2q',
        node: 'dell-1',
        devices: ['GPU-aaaa0000'],
        memoryMiB: 20163,
        isolation: 'interposer',
        computePercent: 30,
      },
    ],
    advice: [
      {
        rule: 'ADD_WORKERS',
        since: before(40),
        message:
          'Its GPU works 31 % of the time, and 1 of 8 cores does: the program waits for its loader.',
        command: '',
      },
      {
        rule: 'OVERSIZED',
        since: before(40),
        message: 'It has used at most 9 of 19.7 GiB; a share of 0.3 would do.',
        command: 'kubectl gpu submit bert-finetune -g 0.3 --dry-run=client -o yaml',
      },
    ],
    conditions: [
      {
        type: 'Accepted',
        status: 'True',
        lastTransitionTime: before(310),
        reason: 'Accepted',
        message: 'It is planned.',
      },
      {
        type: 'Placed',
        status: 'True',
        lastTransitionTime: before(120),
        reason: 'Placed',
        message: 'All its pods have GPUs.',
      },
      {
        type: 'Protected',
        status: 'True',
        lastTransitionTime: before(119),
        reason: 'Enforced',
        message: 'Memory caps are kept by libgpucap.',
      },
    ],
  },
});

/** One that waits, and is told why. */
export const WAITING: GPUJob = job('llava-eval', {
  minutes: 26,
  status: {
    phase: 'Pending',
    reason: 'WaitingForQuota',
    message:
      'project vision holds 7.5 of at most 8 GPUs, and this asks for 1; it waits for 0.5 GPU that pods of the project give back',
    project: 'vision',
    gpu: '0/1',
    podSummary: '0/0/1',
    queuePosition: 1,
    conditions: [
      {
        type: 'Placed',
        status: 'False',
        lastTransitionTime: before(26),
        reason: 'WaitingForQuota',
        message: 'project vision holds 7.5 of at most 8 GPUs, and this asks for 1',
      },
    ],
  },
});

/** One that has ended, and what it did with its GPUs. */
export const ENDED: GPUJob = job('tts-train', {
  namespace: 'speech',
  minutes: 2900,
  status: {
    phase: 'Succeeded',
    project: 'speech',
    gpu: '0/2',
    podSummary: '0/1/1',
    usage: {
      gpuSeconds: 166_000,
      usedGPUSeconds: 121_000,
      idleGPUSeconds: 9000,
      meanPercent: 73,
      p50Percent: 82,
      p95Percent: 99,
      peakMiB: 31_200,
      capMiB: 40_326,
    },
  },
});

export const JOBS: readonly GPUJob[] = [
  RUNNING,
  SEARCH,
  WAITING,
  ENDED,
  job('asr-large', {
    namespace: 'speech',
    minutes: 48,
    status: {
      phase: 'Pending',
      reason: 'Fragmented',
      message:
        '2.1 GPUs are free in sum, and this asks for a whole one: the most in one piece is 0.7 on dell-2',
      project: 'speech',
      gpu: '0/1',
      podSummary: '0/0/1',
      queuePosition: 1,
    },
  }),
  job('notebook-anna', {
    namespace: 'lab',
    minutes: 1500,
    spec: { type: 'interactive' },
    status: {
      phase: 'Running',
      project: 'lab',
      gpu: '0.3/0.3',
      podSummary: '1/0/1',
      node: 'dell-2',
    },
  }),
  job('segmenter', {
    minutes: 700,
    status: {
      phase: 'Failed',
      reason: 'OOMKilled',
      message:
        'main used more memory than its limit of 16Gi and was killed; ask for more in spec.resources.limits.memory',
      project: 'vision',
      gpu: '0/1',
      podSummary: '0/0/1',
      firstFailure: 'index 0, container main: OOMKilled after 41 min',
    },
  }),
  job('night-run', {
    namespace: 'lab',
    minutes: 5,
    spec: { suspend: true },
    status: {
      phase: 'Suspended',
      reason: 'Suspended',
      project: 'lab',
      gpu: '0/4',
      podSummary: '0/0/1',
    },
  }),
];

export const PROJECTS: readonly GPUProject[] = [
  project(
    'vision',
    { quota: 6, limit: 8 },
    {
      allocatedGPU: '7.5',
      borrowedGPU: '1.5',
      fairShareGPU: '7.2',
      pendingGPU: '1',
      jobs: { running: 6, pending: 1 },
    }
  ),
  project(
    'speech',
    { quota: 8 },
    {
      allocatedGPU: '4',
      borrowedGPU: '0',
      fairShareGPU: '5',
      pendingGPU: '1',
      jobs: { running: 3, pending: 1 },
    }
  ),
  project(
    'lab',
    { quota: 2, limit: 4 },
    {
      allocatedGPU: '0.3',
      borrowedGPU: '0',
      fairShareGPU: '0.3',
      pendingGPU: '0',
      jobs: { running: 1, pending: 0 },
      conditions: [
        {
          type: 'QuotaCovered',
          status: 'False',
          lastTransitionTime: before(90),
          reason: 'Overcommitted',
          message: 'The quotas of all projects promise 16 GPUs, and the cluster has 12.',
        },
      ],
    }
  ),
];

export const USAGES: readonly GPUUsage[] = [
  {
    metadata: { name: 'current', namespace: 'vision' },
    status: {
      observedAt: before(1),
      gpus: 7.5,
      workloads: [
        {
          kind: 'GPUJob',
          name: 'bert-finetune',
          uid: 'uid-of-bert-finetune',
          project: 'vision',
          type: 'training',
          state: 'Running',
          pods: 1,
          gpus: 0.5,
          startedAt: before(120),
          gpuSeconds: 3600,
          usedGPUSeconds: 1116,
          busy: { now: 28, mean: 31, p50: 30, p95: 44 },
          memoryMiB: { now: 8900, peak: 9216, cap: 20_163 },
          advice: [{ rule: 'ADD_WORKERS', message: 'more loader workers' }],
        },
        {
          kind: 'Deployment',
          name: 'captioner',
          project: 'vision',
          type: 'service',
          state: 'Running',
          pods: 2,
          gpus: 5,
          gpuSeconds: 900_000,
          usedGPUSeconds: 620_000,
          busy: { now: 91, mean: 69 },
          memoryMiB: { peak: 30_100, cap: 40_326 },
        },
      ],
    },
  },
  {
    metadata: { name: 'current', namespace: 'lab' },
    status: {
      observedAt: before(1),
      gpus: 0.3,
      workloads: [
        {
          kind: 'GPUJob',
          name: 'notebook-anna',
          uid: 'uid-of-notebook-anna',
          project: 'lab',
          type: 'interactive',
          state: 'Running',
          pods: 1,
          gpus: 0.3,
          gpuSeconds: 27_000,
          usedGPUSeconds: 800,
          busy: { now: 0, mean: 3 },
          memoryMiB: { peak: 2100, cap: 12_097 },
          idleSince: before(340),
          advice: [{ rule: 'GPU_IDLE', message: 'release it' }],
        },
        {
          kind: 'Pod',
          name: 'probe',
          state: 'Ended',
          gpus: 1,
          gpuSeconds: 5400,
        },
      ],
    },
  },
  { metadata: { name: 'cluster', namespace: 'gpu-scheduler' }, status: { observedAt: before(1) } },
];

export const NODES: readonly GPUNode[] = [
  {
    metadata: { name: 'dell-1' },
    status: {
      devices: [
        { uuid: 'GPU-aaaa0000', index: 0, computeCapability: '8.0', ...A100 },
        { uuid: 'GPU-aaaa0001', index: 1, computeCapability: '8.0', ...A100 },
      ],
    },
  },
];
