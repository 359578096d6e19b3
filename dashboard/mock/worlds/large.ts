import type { JobRow, ProjectRow, QueueRow, ShareRow } from '../../src/api/views.ts';
import {
  AT,
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
import { pickOne, randomly } from '../random.ts';
import { world, type World } from '../world.ts';

const NODES = 125;
const JOBS = 10_000;
const PROJECTS = [
  'vision',
  'speech',
  'genomics',
  'robotics',
  'climate',
  'language',
  'finance',
  'chem',
  'astro',
  'retail',
  'maps',
  'video',
];
const STEMS = ['train', 'eval', 'finetune', 'sweep', 'fold', 'asr', 'vit', 'gan', 'bert', 'slam'];
const REASONS = [
  ['WaitingForQuota', 'the project uses all that it may'],
  ['WaitingForGPU', 'no GPU is free; the next is in about 12 min'],
  ['Fragmented', 'enough is free in sum, nowhere in one piece'],
  ['WaitingForGang', 'room for some of its pods is held'],
  ['Unsatisfiable', 'asks for 96 GiB on one GPU, the largest has 80'],
] as const;

/** A thousand GPUs, ten thousand jobs. */
export function large(): World {
  const random = randomly(7);
  const running: JobRow[] = [];
  const shareOf = (gpus: number): ShareRow => {
    const owner = pickOne(random, PROJECTS);
    const name = `${pickOne(random, STEMS)}-${running.length + 1}`;
    const idle = random() < 0.07;
    const busy = idle ? 0 : gpus * (0.35 + 0.64 * random());
    const idleSince = idle ? AT - (1 + 20 * random()) * HOUR : null;
    const row = job({
      ref: ref(owner, name),
      held: gpus,
      asked: gpus,
      busy: busy / gpus,
      idleSince,
      created: AT - random() * 72 * HOUR,
    });
    running.push(row);
    return share({ ref: row.ref, gpus, busy, idleSince, pod: `${name}-0` });
  };
  const nodes = Array.from({ length: NODES }, (_, index) => {
    const h100 = index >= 80;
    const model = h100 ? 'NVIDIA-H100-80GB-HBM3' : 'NVIDIA-A100-SXM4-80GB';
    const closed = index === 97 ? 'cordoned' : '';
    const name = `gpu-${String(index + 1).padStart(3, '0')}`;
    const from = running.length;
    const devices = Array.from({ length: 8 }, (_each, gpu) => {
      const roll = random();
      const shares =
        roll < 0.08 || closed
          ? []
          : roll < 0.62
            ? [shareOf(1)]
            : roll < 0.8
              ? [shareOf(0.5), shareOf(0.3)]
              : [shareOf(0.25), shareOf(0.25), shareOf(0.25)];
      return { ...device(gpu, shares), model };
    });
    for (let row = from; row < running.length; row += 1) {
      const before = running[row];
      if (before) running[row] = { ...before, node: name, type: 'training' };
    }
    return node(name, devices, {
      model,
      closed,
      labels: { zone: index < 64 ? 'a' : 'b', rack: String(Math.floor(index / 16) + 1) },
      cpuFree: Math.floor(random() * 90),
    });
  });
  const queue: QueueRow[] = Array.from({ length: 640 }, (_, index) => {
    const owner = pickOne(random, PROJECTS);
    const [reason, message] = pickOne(random, REASONS);
    const each = pickOne(random, ['0.25', '0.5', '1', '1', '8 GiB']);
    const pods = reason === 'WaitingForGang' ? 4 : 1;
    return queued({
      ref: ref(owner, `${pickOne(random, STEMS)}-q${index + 1}`),
      reason,
      message,
      each,
      pods,
      gpus: pods * (Number(each) || 0.1),
      position: Math.floor(index / PROJECTS.length) + 1,
      since: AT - (640 - index) * 2 * MINUTE,
      mends: reason === 'Unsatisfiable',
    });
  });
  const done = Array.from({ length: JOBS - running.length - queue.length }, (_, index): JobRow => {
    const failed = random() < 0.06;
    const created = AT - (4 + random() * 160) * HOUR;
    return job({
      ref: ref(pickOne(random, PROJECTS), `${pickOne(random, STEMS)}-e${index + 1}`),
      phase: failed ? 'Failed' : 'Succeeded',
      reason: failed ? 'ExitCode' : '',
      asked: pickOne(random, [0.25, 0.5, 1, 1, 4]),
      held: 0,
      running: 0,
      succeeded: failed ? 0 : 1,
      node: '',
      created,
      ended: created + random() * 4 * HOUR,
    });
  });
  const pending = queue.map((row) =>
    job({
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
    }),
  );
  const made = world({
    nodes,
    queue,
    jobs: [...running, ...pending, ...done],
    projects: PROJECTS.map((name, index) => projectOf(name, index, running, queue)),
    sweeps: Array.from({ length: 30 }, (_, index) =>
      sweep({
        ref: ref(pickOne(random, PROJECTS), `search-${index + 1}`),
        counts: { succeeded: 20 + index, running: 4, waiting: 10 },
        trials: 100,
        best: { trial: index, value: 0.2 + random(), parameters: {} },
      }),
    ),
    idle: running
      .filter((row) => row.idleSince !== null)
      .slice(0, 5)
      .map((row) => ({
        ref: row.ref,
        project: row.project,
        type: row.type,
        gpus: row.held,
        idleSince: row.idleSince ?? AT,
        gpuHours: (row.held * (AT - (row.idleSince ?? AT))) / HOUR,
        command: `kubectl gpu suspend ${row.ref.name} -n ${row.ref.namespace}`,
      })),
    leads: {
      overview: lead(
        '[893 of 1,000 GPUs](/gpus) are allocated, [612](/jobs?phase=Running) are busy.',
        '[640 jobs](/queue) wait.',
      ),
      gpus: lead(
        '612 of 1,000 GPUs are busy on 125 nodes.',
        '86 are held idle, most by [speech](/projects/speech). The largest free block is a node in [rack 7](/gpus?q=7).',
      ),
      queue: lead(
        '640 jobs wait, half of them less than 10 h 40 min.',
        'A hundred and thirty cannot start before somebody changes them.',
      ),
      jobs: lead('[1,500 jobs](/jobs?phase=Running) run, [640](/queue) wait.'),
      projects: lead('Five of twelve projects borrow.'),
      sweeps: lead('[30 sweeps](/sweeps) run.'),
    },
  });
  return made;
}

/** The same, with a hundred changes a second. */
export function moving(): World {
  const made = large();
  const random = randomly(11);
  made.move = () => {
    for (let change = 0; change < 100; change += 1) {
      const at = Math.floor(random() * made.nodes.length);
      const one = made.nodes[at];
      if (!one) continue;
      const gpu = Math.floor(random() * 8);
      const devices = one.devices.map((each, index) => {
        if (index !== gpu) return each;
        const shares = each.shares.map((held) =>
          held.idleSince === null ? { ...held, busy: held.gpus * (0.3 + 0.7 * random()) } : held,
        );
        return { ...device(gpu, shares), model: each.model };
      });
      made.nodes[at] = { ...one, devices };
      const row = Math.floor(random() * made.jobs.length);
      const before = made.jobs[row];
      if (before && before.held > 0 && before.busy !== null)
        made.jobs[row] = { ...before, busy: random() };
    }
  };
  return made;
}

function projectOf(
  name: string,
  index: number,
  running: readonly JobRow[],
  queue: readonly QueueRow[],
): ProjectRow {
  const own = running.filter((row) => row.project === name);
  const waits = queue.filter((row) => row.project === name);
  const held = own.reduce((sum, row) => sum + row.held, 0);
  const quota = 60 + (index % 4) * 15;
  return project({
    name,
    quota,
    limit: 140,
    held,
    borrowed: Math.max(0, held - quota),
    borrowedSince: held > quota ? AT - index * HOUR : null,
    busy: own.reduce((sum, row) => sum + row.held * (row.busy ?? 0), 0),
    idle: own.filter((row) => row.idleSince !== null).reduce((sum, row) => sum + row.held, 0),
    pending: waits.reduce((sum, row) => sum + row.gpus, 0),
    waiting: waits.length,
    running: own.length,
  });
}
