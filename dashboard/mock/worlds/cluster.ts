import type { DeviceRow, JobRow, NodeRow, QueueRow } from '../../src/api/views.ts';
import {
  AT,
  DAY,
  device,
  HOUR,
  job,
  lead,
  MINUTE,
  node,
  project,
  queued,
  ref,
  share,
  sweep,
} from '../build.ts';
import { partsOf, world, type World } from '../world.ts';

// name, project, kind, GPUs of a pod, use of the device's time by its own processes, idle since
type On = readonly [
  name: string,
  project: string,
  gpus: number,
  busy: number | null,
  idle?: number,
];

const bert: readonly On[] = [
  ['bert-finetune', 'vision', 0.5, 0.28],
  ['tts-train', 'speech', 0.3, 0.22],
];
const pair = (one: string, other: string): readonly On[] => [
  [one, 'vision', 0.5, 0.45],
  [other, 'genomics', 0.3, 0.16],
];
const trials: readonly On[] = [
  ['hpo-sweep', 'vision', 0.25, 0.2],
  ['hpo-sweep', 'vision', 0.25, 0.12],
  ['hpo-sweep', 'vision', 0.25, 0.22],
];
const one = (name: string, project: string, busy: number): readonly On[] => [
  [name, project, 1, busy],
];
const nap = (name: string, project: string, gpus: number, hours: number): On => [
  name,
  project,
  gpus,
  0,
  hours,
];

const NODES: readonly (readonly (readonly On[])[])[] = [
  [
    pair('seg-a', 'fold-15'),
    [nap('vit-debug', 'vision', 0.5, 6.5), ['tts-train', 'speech', 0.5, 0.35]],
    [
      ['fold-12', 'genomics', 0.5, 0.44],
      ['asr-eval', 'speech', 0.5, 0.21],
    ],
    pair('seg-b', 'fold-16'),
    [...trials, ['hpo-sweep', 'vision', 0.25, 0.21]],
    [nap('notebook-mk', 'speech', 0.5, 9.07), ['llm-eval', 'vision', 0.5, 0.36]],
    one('vit-huge', 'vision', 0.61),
    one('asr-base', 'speech', 0.92),
  ],
  [
    bert,
    trials,
    [nap('notebook-mk', 'speech', 1, 9.07)],
    [
      ['slam-nav', 'robotics', 0.5, 0.41],
      ['grasp-rl', 'robotics', 0.3, 0.2],
    ],
    [nap('nb-protein', 'genomics', 1, 2.85)],
    [nap('nb-protein', 'genomics', 0.5, 2.85), ['gan-faces', 'vision', 0.5, 0.3]],
    trials,
    [
      ['llm-eval', 'vision', 0.5, 0.41],
      ['gan-faces', 'vision', 0.5, 0.33],
    ],
  ],
  [
    one('fold-11', 'genomics', 0.35),
    [nap('vit-debug', 'vision', 0.5, 6.5), ['asr-eval', 'speech', 0.5, 0.3]],
    pair('seg-c', 'fold-17'),
    pair('seg-d', 'fold-18'),
    pair('seg-e', 'fold-19'),
    [],
    [],
    [],
  ],
  [
    one('resnet-ddp', 'vision', 0.61),
    [
      ['slam-nav', 'robotics', 0.5, 0.45],
      ['grasp-rl', 'robotics', 0.3, 0.16],
    ],
    [
      ['slam-nav', 'robotics', 0.5, 0.45],
      ['grasp-rl', 'robotics', 0.3, 0.16],
    ],
    one('resnet-ddp', 'vision', 0.97),
    one('resnet-ddp', 'vision', 0.61),
    one('resnet-ddp', 'vision', 0.88),
    [
      ['fold-13', 'genomics', 0.5, 0.45],
      ['fold-14', 'genomics', 0.3, 0.16],
    ],
    pair('seg-f', 'fold-20'),
  ],
  [[], [], one('llm-eval', 'vision', 0.61), [], [], [], [], []],
];

const kinds: Readonly<Record<string, string>> = {
  'notebook-mk': 'Deployment',
  'nb-protein': 'StatefulSet',
  'asr-base': 'PyTorchJob',
};

const workload = (name: string, namespace: string) => ref(namespace, name, kinds[name] ?? 'GPUJob');

function made(index: number, on: readonly On[], at: string): DeviceRow {
  const shares = on.map(([name, owner, gpus, busy, idle], order) =>
    share({
      ref: workload(name, owner),
      pod: `${name}-${at}-${index}-${order}`,
      gpus,
      busy,
      idleSince: idle === undefined ? null : AT - idle * HOUR,
      memoryMib: Math.round(gpus * 81_920 * (idle === undefined ? 0.62 : 0.07)),
    }),
  );
  return device(index, shares);
}

/** The cluster of the drafts: five nodes, forty GPUs, four projects. */
export function cluster(): World {
  const nodes = NODES.map((devices, index): NodeRow => {
    const name = `dell-${index + 1}`;
    const model =
      ['NVIDIA-A100-SXM4-80GB', 'NVIDIA-H100-80GB-HBM3', 'NVIDIA-A30'][index < 3 ? 0 : index - 2] ??
      '';
    const memoryMib = index === 4 ? 24_576 : 81_920;
    return node(
      name,
      devices.map((on, gpu) => ({ ...made(gpu, on, `${index}`), model, memoryMib })),
      {
        model,
        memoryMib,
        labels: { zone: index < 3 ? 'a' : 'b', rack: String(Math.floor(index / 2) + 1) },
        closed: index === 4 ? 'cordoned' : '',
        cpuFree: [62, 0.5, 80, 40, 90][index] ?? 0,
        cpuTotal: index === 3 ? 96 : 128,
      },
    );
  });
  const queue = waiting();
  const jobs = [...running(nodes), ...queue.map(asJob), ...ended()];
  const parts = partsOf(world({ nodes }));
  const sum = (...states: string[]) =>
    Math.round(
      10 *
        parts
          .filter((part) => states.includes(part.state))
          .reduce((all, part) => all + part.gpus, 0),
    ) / 10;
  return world({
    nodes,
    queue,
    jobs,
    projects: [
      project({
        name: 'vision',
        quota: 12,
        limit: 18,
        held: 16.1,
        borrowed: 4.1,
        borrowedSince: AT - 5 * HOUR,
        busy: 9.4,
        idle: 1,
        pending: 6.5,
        waiting: 7,
        running: 9,
        fairShare: 15.2,
      }),
      project({
        name: 'speech',
        quota: 8,
        limit: 12,
        held: 6.6,
        busy: 3.1,
        idle: 1.5,
        pending: 1,
        waiting: 1,
        running: 5,
        fairShare: 9,
      }),
      project({
        name: 'genomics',
        quota: 8,
        limit: 8,
        held: 4.1,
        busy: 1.5,
        idle: 1.5,
        pending: 1,
        waiting: 2,
        running: 6,
        fairShare: 8,
      }),
      project({
        name: 'robotics',
        quota: 2,
        limit: 10,
        held: 2.4,
        borrowed: 0.4,
        borrowedSince: AT - 1.5 * HOUR,
        busy: 1.6,
        pending: 4.25,
        waiting: 2,
        running: 2,
        fairShare: 5,
        namespaces: ['robotics', 'robotics-lab'],
      }),
    ].map((row) => ({
      ...row,
      running: jobs.filter((each) => each.project === row.name && each.held > 0).length,
    })),
    sweeps: sweeps(),
    top: top(),
    idle: [
      {
        ref: workload('notebook-mk', 'speech'),
        project: 'speech',
        type: 'training',
        gpus: 1.5,
        idleSince: AT - 9.07 * HOUR,
        gpuHours: 13.6,
        command: 'kubectl scale deployment notebook-mk -n speech --replicas 0',
      },
      {
        ref: workload('vit-debug', 'vision'),
        project: 'vision',
        type: 'training',
        gpus: 1,
        idleSince: AT - 6.5 * HOUR,
        gpuHours: 6.5,
        command: 'kubectl gpu suspend vit-debug -n vision',
      },
      {
        ref: workload('nb-protein', 'genomics'),
        project: 'genomics',
        type: 'training',
        gpus: 1.5,
        idleSince: AT - 2.85 * HOUR,
        gpuHours: 4.3,
        command: 'kubectl scale statefulset nb-protein -n genomics --replicas 0',
      },
    ],
    advice: [
      {
        ref: ref('vision', 'bert-finetune'),
        project: 'vision',
        rule: 'DATA_BOUND',
        since: AT - 3 * HOUR,
        message: '28 % busy while its 8 CPUs are full: data loading holds it back',
        command: 'kubectl gpu submit bert-finetune-2 --from bert-finetune -n vision --cpu 16',
      },
      {
        ref: ref('speech', 'tts-train'),
        project: 'speech',
        rule: 'OVERSIZED',
        since: AT - DAY,
        message: 'peak memory 14 of 24 GiB, never above 22 % busy: 0.3 is enough for it',
        command: 'kubectl gpu submit tts-train-2 --from tts-train -n speech -g 0.3',
      },
      {
        ref: ref('vision', 'resnet-ddp'),
        project: 'vision',
        rule: 'SCALING_INEFFICIENT',
        since: AT - 40 * MINUTE,
        message: 'four workers do the work of 3.1: one of them waits for the others',
        command: 'kubectl gpu describe resnet-ddp -n vision',
      },
    ],
    log: [
      'step 41200  loss 1.284  batch 0.61 s (data 0.43 s)',
      'step 41210  loss 1.279  batch 0.60 s (data 0.43 s)',
      'step 41220  loss 1.281  batch 0.62 s (data 0.45 s)',
    ].join('\n'),
    leads: {
      overview: lead(
        `[${sum('busy', 'part-unused', 'idle')} of 40 GPUs](/gpus) are allocated, [${sum('busy')}](/jobs?phase=Running) are busy. [${sum('idle')}](/gpus?only=idle) are held idle by two notebooks and a debugger.`,
        '[12 jobs](/queue) wait, seven of them for quota of [vision](/projects/vision).',
      ),
      gpus: lead(
        `${sum('busy')} of 40 GPUs are busy on five nodes.`,
        'Most room in one piece: a whole GPU on [dell-3](/gpus?q=dell-3), 0.5 on [dell-1](/gpus?q=dell-1). [dell-5](/gpus?q=dell-5) is cordoned.',
      ),
      queue: lead(
        '12 jobs wait, half of them less than 25 min.',
        'Next to start is [asr-large](/jobs/speech/GPUJob/asr-large), when [tts-train](/jobs/speech/GPUJob/tts-train) ends. Three could start now if [notebook-mk](/jobs/speech/Deployment/notebook-mk) gave its GPUs back.',
      ),
      jobs: lead(
        `[${jobs.filter((row) => row.phase === 'Running').length} jobs](/jobs?phase=Running) run, [12](/queue) wait.`,
        '[One](/jobs?phase=Failed) failed today.',
      ),
      projects: lead(
        '[vision](/projects/vision) borrows 4.1 GPUs since 10:14, [robotics](/projects/robotics) 0.4.',
        '[speech](/projects/speech) and [genomics](/projects/genomics) leave 5.3 of their own unused.',
      ),
      sweeps: lead(
        '[Two sweeps](/sweeps) run with 11 trials at once.',
        'The best of [hpo-sweep](/sweeps/vision/hpo-sweep) is 0.2314, less than yesterday’s 0.2398.',
      ),
    },
  });
}

function running(nodes: readonly NodeRow[]): JobRow[] {
  const rows = new Map<string, JobRow>();
  for (const each of nodes) {
    for (const gpu of each.devices) {
      for (const held of gpu.shares) {
        if (!held.ref) continue;
        const key = held.ref.name;
        const before = rows.get(key);
        rows.set(
          key,
          job({
            ref: held.ref,
            project: held.project,
            reason: '',
            held: Math.round(((before?.held ?? 0) + held.gpus) * 100) / 100,
            busy: held.idleSince !== null ? 0 : held.busy,
            memoryMib: (before?.memoryMib ?? 0) + (held.memoryMib ?? 0),
            idleSince: held.idleSince,
            node:
              before && !before.node.split(', ').includes(each.name)
                ? `${before.node}, ${each.name}`
                : (before?.node ?? each.name),
            running: (before?.running ?? 0) + 1,
            pods: (before?.pods ?? 0) + 1,
            type: held.ref.kind === 'GPUJob' ? 'training' : 'interactive',
            created: AT - (3.9 + (key.length % 7) * (key === 'bert-finetune' ? 0 : 5)) * HOUR,
            advice:
              {
                'bert-finetune': 'DATA_BOUND',
                'tts-train': 'OVERSIZED',
                'resnet-ddp': 'SCALING_INEFFICIENT',
              }[key] ?? '',
            sweep: key === 'hpo-sweep',
          }),
        );
      }
    }
  }
  return [...rows.values()].map((row) => ({ ...row, asked: row.held }));
}

function waiting(): QueueRow[] {
  const vision = (name: string, each: string, minutes: number, position: number, message: string) =>
    queued({
      ref: ref('vision', name),
      each,
      gpus: Number(each),
      since: AT - minutes * MINUTE,
      position,
      reason: 'WaitingForQuota',
      message,
    });
  return [
    queued({
      ref: ref('speech', 'asr-large'),
      type: 'training',
      reason: 'WaitingForGPU',
      message:
        'needs a whole GPU with 80 GB; dell-3 has one in about 6 min; room is kept for it there; its project is below its fair share: others give way from 15:24 on',
      since: AT - 4 * MINUTE,
      priority: '100',
    }),
    vision(
      'vit-large',
      '1',
      130,
      1,
      'vision uses 16.1 of its limit 18 with what is promised; needs 1',
    ),
    vision('vit-base', '0.5', 110, 2, 'behind vit-large in vision'),
    vision('vit-small', '0.5', 108, 3, 'behind vit-large in vision'),
    vision('gan-cars', '1', 64, 4, 'behind vit-large in vision'),
    vision('gan-cats', '1', 63, 5, 'behind vit-large in vision'),
    vision('seg-city', '1', 22, 6, 'behind vit-large in vision'),
    vision('seg-road', '1.5', 18, 7, 'behind vit-large in vision'),
    queued({
      ref: ref('genomics', 'fold-22'),
      each: '0.5',
      gpus: 0.5,
      reason: 'Fragmented',
      message: '2.3 free in sum, best single GPU has 0.4 (dell-4, GPU 6)',
      since: AT - 41 * MINUTE,
    }),
    queued({
      ref: ref('genomics', 'fold-23'),
      each: '0.5',
      gpus: 0.5,
      position: 2,
      reason: 'Fragmented',
      message: 'like fold-22',
      since: AT - 40 * MINUTE,
    }),
    queued({
      ref: ref('robotics', 'grasp-ddp'),
      each: '1',
      pods: 4,
      gpus: 4,
      reason: 'WaitingForGang',
      message: 'room for 3 of 4 pods is held on dell-2 until 15:20',
      since: AT - 12 * MINUTE,
    }),
    queued({
      ref: ref('robotics', 'slam-map'),
      each: '0.25',
      gpus: 0.25,
      position: 2,
      reason: 'ImageNotPulled',
      message: 'registry answers 401 for team/torch:2.9',
      since: AT - 6 * MINUTE,
      mends: true,
    }),
  ];
}

function asJob(row: QueueRow): JobRow {
  return job({
    ref: row.ref,
    phase: 'Pending',
    reason: row.reason,
    message: row.message,
    asked: row.gpus,
    held: 0,
    running: 0,
    pods: row.pods,
    node: '',
    created: row.since,
  });
}

function ended(): JobRow[] {
  const done = { held: 0, running: 0, node: '', busy: null, memoryMib: null };
  return [
    job({
      ...done,
      ref: ref('vision', 'gan-old'),
      phase: 'Succeeded',
      asked: 1,
      succeeded: 1,
      created: AT - 14 * HOUR,
      ended: AT - 34 * MINUTE,
    }),
    job({
      ...done,
      ref: ref('vision', 'bert-base'),
      phase: 'Succeeded',
      asked: 0.5,
      succeeded: 1,
      created: AT - DAY,
      ended: AT - 18 * HOUR,
    }),
    job({
      ...done,
      ref: ref('genomics', 'fold-10'),
      phase: 'Failed',
      reason: 'OOMKilled',
      message: 'used 65 of 64 GiB of main memory',
      asked: 0.5,
      created: AT - 6 * HOUR,
      ended: AT - 4 * HOUR,
    }),
    job({
      ...done,
      ref: ref('robotics', 'slam-old'),
      phase: 'Suspended',
      reason: 'Suspended',
      message: 'by its owner',
      asked: 1,
      created: AT - 2 * DAY,
    }),
  ];
}

function sweeps() {
  return [
    sweep({
      ref: ref('vision', 'hpo-sweep'),
      counts: { waiting: 4, running: 10, succeeded: 61, pruned: 22, failed: 1 },
      trials: 128,
      best: top()[0] ?? null,
      created: AT - 5 * HOUR,
    }),
    sweep({
      ref: ref('speech', 'beam-width'),
      objective: 'wer',
      counts: { running: 1, succeeded: 3, waiting: 12 },
      trials: 16,
      best: { trial: 2, value: 0.0871, parameters: { beam: '12' } },
      created: AT - 50 * MINUTE,
    }),
    sweep({
      ref: ref('vision', 'hpo-yesterday'),
      phase: 'Succeeded',
      counts: { succeeded: 96, pruned: 31, failed: 1 },
      trials: 128,
      best: { trial: 77, value: 0.2398, parameters: {} },
      created: AT - 29 * HOUR,
    }),
    sweep({
      ref: ref('genomics', 'fold-depth'),
      phase: 'Pending',
      goal: 'maximize',
      objective: 'lddt',
      counts: { waiting: 24 },
      trials: 24,
      message: 'WaitingForQuota',
      created: AT - 9 * MINUTE,
    }),
  ];
}

function top() {
  const rates = [
    '3.1e-4',
    '2.6e-4',
    '4.4e-4',
    '1.9e-4',
    '6.0e-4',
    '3.8e-4',
    '9.5e-4',
    '1.2e-4',
    '7.1e-4',
    '2.2e-3',
  ];
  return rates.map((rate, index) => ({
    trial: [48, 61, 52, 40, 33, 57, 12, 29, 44, 5][index] ?? index,
    value: 0.2314 + index * 0.0013 + (index % 3) * 0.0004,
    parameters: {
      lr: rate,
      batch: ['64', '64', '128', '64', '32', '128', '64', '32', '256', '128'][index] ?? '64',
      optimizer: index % 4 === 3 ? 'sgd' : 'adamw',
      dropout:
        ['0.1', '0.15', '0.1', '0.05', '0.2', '0.12', '0.1', '0.25', '0.1', '0.3'][index] ?? '0.1',
    },
  }));
}
