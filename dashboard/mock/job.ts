import type {
  BesideRow,
  CurveRow,
  JobView,
  JobRow,
  Placed,
  RanksRow,
  SlowestRow,
  Step,
} from '../src/api/views.ts';
import { sameRef } from '../src/format/job.ts';
import { HOUR, lead, MINUTE } from './build.ts';
import { randomly } from './random.ts';
import type { World } from './world.ts';

const WAITED = 38 * MINUTE;
const STARTING = 162;

/** The page of one workload, as far as the world knows it. */
export function jobView(world: World, row: JobRow): JobView {
  const beside: BesideRow[] = [];
  const placed: Placed[] = [];
  for (const node of world.nodes) {
    for (const device of node.devices) {
      const own = device.shares.filter((share) => sameRef(share.ref, row.ref));
      if (own.length > 0 && beside.length < 4) beside.push({ node: node.name, device });
      for (const share of own) {
        placed.push({
          pod: share.pod,
          role: row.pods > 1 ? 'worker' : '',
          node: node.name,
          devices: [device.index],
          gpus: share.gpus,
          started: row.created + WAITED + STARTING,
          busy: share.busy,
          memoryMib: share.memoryMib,
          capMib: share.capMib,
          cpuCores: share.busy === null ? null : 7.9,
          cpuLimit: 8,
          ramMib: share.busy === null ? null : 21_400,
          ramLimitMib: 65_536,
        });
      }
    }
  }
  const advice = world.advice.filter((each) => sameRef(each.ref, row.ref));
  const runs = placed.length > 0;
  const known = row.busy !== null || row.phase === 'Succeeded';
  const { namespace, name } = row.ref;
  return {
    at: world.at,
    lead: sentence(row, placed),
    row,
    facts: [
      `${row.asked} GPU · ${Math.round(row.asked * 81_920).toLocaleString('en')} MiB cap`,
      'priority 50',
      'image team/torch:2.9',
    ],
    steps: steps(row, placed[0]?.devices[0] ?? 0),
    stepsNote:
      row.created < world.at - 6 * HOUR
        ? 'what was before the last change of leader is told from its status alone'
        : 'each step in the planner’s own words',
    placed,
    slowest: row.sweep ? null : slowest(placed),
    beside,
    advice,
    curve: (runs || row.ended !== null) && known ? curve(row, world.at) : null,
    ranks: row.sweep || placed.length < 2 ? null : ranks(placed, world.at),
    used: runs || row.ended !== null ? used(row, known, world.at) : null,
    commands:
      row.ref.kind === 'GPUJob'
        ? {
            'all about it': `kubectl gpu describe ${name} -n ${namespace}`,
            'why it is so': `kubectl gpu why ${name} -n ${namespace}`,
            'its log': `kubectl gpu logs ${name} -n ${namespace} -f`,
          }
        : {
            'all about it': `kubectl describe ${row.ref.kind.toLowerCase()} ${name} -n ${namespace}`,
          },
    maySuspend: row.ref.kind === 'GPUJob' && row.ended === null,
    suspended: row.phase === 'Suspended',
  };
}

function ranks(placed: readonly Placed[], now: number): RanksRow {
  const many = 40;
  const random = randomly(placed.length);
  return {
    start: now - many * MINUTE,
    stepSeconds: MINUTE,
    pods: placed.map(({ pod, busy }) => ({
      pod,
      busy: Array.from({ length: many }, (_, index) =>
        busy === null || index === 9 ? null : Math.min(1, busy * (0.85 + 0.3 * random())),
      ),
    })),
  };
}

/** Whoever uses its GPUs least of several. */
function slowest(placed: readonly Placed[]): SlowestRow | null {
  const busy = placed.map((each) => each.busy ?? 0).sort((a, b) => a - b);
  const least = placed.find((each) => each.busy === busy[0]);
  const median = busy[Math.floor(busy.length / 2)];
  if (placed.length < 2 || !least || median === undefined) return null;
  return { pod: least.pod, mean: busy[0] ?? 0, median };
}

function sentence(row: JobRow, placed: readonly Placed[]) {
  const first = placed[0];
  const name = row.ref.name;
  if (first && placed.length === 1) {
    return lead(
      `${name} runs on ${first.gpus === 0.5 ? 'half' : String(first.gpus)} of [GPU ${first.devices[0] ?? 0} of ${first.node}](/gpus/${first.node}/${first.devices[0] ?? 0}), and is ${Math.round((row.busy ?? 0) * 100)} % busy.`,
      'It waited 41 min, 38 of them for quota.',
    );
  }
  if (first) {
    return lead(
      `${name} runs with ${placed.length} pods on ${row.held} GPUs, and is ${Math.round((row.busy ?? 0) * 100)} % busy.`,
      'It waited 41 min, 38 of them for quota.',
    );
  }
  if (row.phase === 'Pending') return lead(`${name} waits: ${row.message}.`);
  return lead(`${name} has ended: ${row.phase}.`);
}

function steps(row: JobRow, device: number): Step[] {
  const at = row.created;
  const begin: Step[] = [
    { at, kind: 'submitted', words: 'submitted', detail: '' },
    {
      at: at + 1,
      kind: 'waits',
      words: row.reason || 'WaitingForQuota',
      detail: row.message || 'vision uses 17.9 of its limit 18; this job needs 0.5',
    },
  ];
  if (row.phase === 'Pending') return begin;
  const placed = at + 1 + WAITED;
  begin[1] = {
    at: at + 1,
    kind: 'waits',
    words: 'WaitingForQuota',
    detail: `${row.project} used 17.9 of its limit 18; this job needs ${row.asked}`,
  };
  begin.push(
    {
      at: placed,
      kind: 'placed',
      words: `placed on ${row.node || 'dell-2'}, GPU ${device}, beside tts-train (0.3)`,
      detail: 'quota came free when gan-old ended; tightest GPU that leaves whole GPUs whole',
    },
    { at: placed + STARTING, kind: 'runs', words: 'image pulled (7.1 GB), started', detail: '' },
  );
  if (row.ended !== null)
    begin.push({ at: row.ended, kind: 'ended', words: row.phase, detail: row.message });
  else if (row.phase === 'Suspended')
    begin.push({ at: placed + HOUR, kind: 'suspended', words: 'suspended', detail: row.message });
  return begin;
}

function curve(row: JobRow, now: number): CurveRow {
  const start = row.created + WAITED;
  const stepSeconds = 600;
  const many = Math.max(6, Math.min(144, Math.floor(((row.ended ?? now) - start) / stepSeconds)));
  const random = randomly(row.ref.name.length);
  const busy = row.busy ?? 0.6;
  const memory = row.memoryMib ?? 25_000;
  const cores = row.ref.kind === 'GPUJob' ? 7.7 : 1.2;
  return {
    start,
    stepSeconds,
    busy: Array.from({ length: many }, (_, index) =>
      index === 4 ? null : Math.max(0, Math.min(1, busy * (0.75 + 0.5 * random()))),
    ),
    memoryMib: Array.from({ length: many }, (_, index) =>
      index === 4 ? null : memory * Math.min(1, 0.2 + index / (many / 3)),
    ),
    cpuCores: Array.from({ length: many }, (_, index) =>
      index === 4 ? null : index === 0 ? 1.1 : cores + 0.3 * random(),
    ),
    cpuLimit: row.ended === null ? 8 : null,
  };
}

function used(row: JobRow, known: boolean, now: number) {
  const hours = ((row.ended ?? now) - row.created - WAITED) / HOUR;
  const gpuHours = Math.max(0, hours) * row.asked;
  const busy = row.busy ?? 0.62;
  return {
    gpuHours,
    usedGpuHours: known ? gpuHours * busy : null,
    idleGpuHours: known ? (row.idleSince === null ? 0 : gpuHours * 0.8) : null,
    mean: known ? busy : null,
    p50: known ? busy * 0.95 : null,
    p95: known ? Math.min(1, busy * 1.5) : null,
    peakMib: known ? Math.round((row.memoryMib ?? 25_000) * 1.02) : null,
    capMib: Math.round(row.asked * 81_920),
  };
}
