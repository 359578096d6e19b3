import type {
  AdviceRow,
  IdleRow,
  JobRow,
  Lead,
  Me,
  NodeRow,
  PartRow,
  ProjectRow,
  QueueRow,
  Ranked,
  ReasonRow,
  SweepRow,
} from '../src/api/views.ts';
import { heldOf } from '../src/parts/box.ts';
import { AT, lead } from './build.ts';

/** A cluster as a page could show it. */
export interface World {
  at: number;
  me: Me;
  followed: boolean;
  silentAgents: number;
  idleSeconds: number;
  nodes: NodeRow[];
  jobs: JobRow[];
  queue: QueueRow[];
  projects: ProjectRow[];
  sweeps: SweepRow[];
  top: Ranked[];
  idle: IdleRow[];
  advice: AdviceRow[];
  log: string;
  leads: Record<'overview' | 'gpus' | 'queue' | 'jobs' | 'projects' | 'sweeps', Lead>;
  /** What each second changes, where it is a world that moves. */
  move?: (seconds: number) => void;
}

const NOTHING = lead('Nothing is there yet.');

export function world(part: Partial<World> = {}): World {
  return {
    at: AT,
    me: { user: 'mira@example.com', all: true, namespaces: [], actions: true, version: '9.9.9' },
    followed: true,
    silentAgents: 0,
    idleSeconds: 3600,
    nodes: [],
    jobs: [],
    queue: [],
    projects: [],
    sweeps: [],
    top: [],
    idle: [],
    advice: [],
    log: '',
    leads: {
      overview: NOTHING,
      gpus: NOTHING,
      queue: NOTHING,
      jobs: NOTHING,
      projects: NOTHING,
      sweeps: NOTHING,
    },
    ...part,
  };
}

/** Where all GPUs are: each of them is counted once, whole. */
export function partsOf(world: World, smallest = 0.5): PartRow[] {
  const sums: Record<PartRow['state'], number> = {
    busy: 0,
    'part-unused': 0,
    idle: 0,
    unknown: 0,
    neighbours: 0,
    'free-in-pieces': 0,
    free: 0,
    closed: 0,
  };
  for (const node of world.nodes) {
    for (const device of node.devices) {
      for (const share of device.shares) {
        if (share.busy === null) sums.unknown += share.gpus;
        else if (share.idleSince !== null) sums.idle += share.gpus;
        else {
          const used = Math.min(share.gpus, share.busy);
          sums.busy += used;
          sums['part-unused'] += share.gpus - used;
        }
      }
      const left = 1 - heldOf(device);
      if (node.closed || device.problem) sums.closed += left;
      else if (left < smallest) sums['free-in-pieces'] += left;
      else sums.free += left;
    }
  }
  const closed = world.nodes
    .filter((node) => node.closed)
    .map((node) => `${node.name} is ${node.closed}`);
  return (Object.keys(sums) as PartRow['state'][]).map((state) => ({
    state,
    gpus: Math.round(sums[state] * 1000) / 1000,
    note:
      state === 'closed'
        ? closed.join(', ')
        : state === 'free-in-pieces'
          ? `below ${smallest}`
          : '',
  }));
}

export function reasonsOf(queue: readonly QueueRow[]): ReasonRow[] {
  const rows = new Map<string, ReasonRow>();
  for (const each of queue) {
    const before = rows.get(each.reason);
    const older = !before || each.since < before.since;
    rows.set(each.reason, {
      reason: each.reason,
      jobs: (before?.jobs ?? 0) + 1,
      gpus: (before?.gpus ?? 0) + each.gpus,
      since: Math.min(each.since, before?.since ?? Infinity),
      message: older ? each.message : before.message,
      first: older ? each.ref : before.first,
    });
  }
  return [...rows.values()].sort((a, b) => b.jobs - a.jobs);
}
