import type {
  GpusView,
  JobsView,
  OverviewView,
  ProjectView,
  ProjectsView,
  QueueView,
  SweepView,
  SweepsView,
} from '../src/api/views.ts';
import { AT, HOUR, lead } from './build.ts';
import { chartView } from './chart.ts';
import { deviceView } from './device.ts';
import { jobView } from './job.ts';
import { type Asked, listed } from './lists.ts';
import { partsOf, reasonsOf, type World } from './world.ts';

// As the operator has them.
const JOB_SORTS = ['created', '-created', 'name', 'held', '-held', 'busy', '-busy', 'phase'];
const QUEUE_SORTS = ['position', 'since', '-since', 'gpus', '-gpus', 'name'];

type Maker = (world: World, parts: readonly string[], asked: Asked) => object | null;

/** The pages by the first part of their address, and how many parts follow it. */
const MAKERS: Readonly<Record<string, Maker>> = {
  'overview/0': overview,
  'gpus/0': gpus,
  'gpus/2': (world, [node = '', index]) => deviceView(world, node, Number(index)),
  'queue/0': queue,
  'jobs/0': jobs,
  'jobs/3': (world, [namespace, kind, name]) => {
    const row = world.jobs.find(
      ({ ref }) => ref.namespace === namespace && ref.kind === kind && ref.name === name,
    );
    return row ? jobView(world, row) : null;
  },
  'projects/0': projects,
  'projects/1': project,
  'sweeps/0': sweeps,
  'sweeps/2': sweep,
  'chart/0': (world, _parts, asked) =>
    chartView(world, asked['span'] ?? '24h', asked['project'] ?? ''),
  'me/0': (world) => world.me,
};

/** A view by its address below /api/v1; null: there is no such thing. */
export function view(world: World, address: string): object | null {
  const url = new URL(address, 'http://mock');
  const [first = '', ...parts] = url.pathname.split('/').filter(Boolean).map(decodeURIComponent);
  return (
    MAKERS[`${first}/${parts.length}`]?.(world, parts, Object.fromEntries(url.searchParams)) ?? null
  );
}

const refWords = (row: { ref: { namespace: string; name: string } }) =>
  `${row.ref.namespace}/${row.ref.name}`;
const names = (world: World) => world.projects.map((row) => row.name);

function overview(world: World): OverviewView {
  const parts = partsOf(world);
  return {
    at: world.at,
    lead: world.leads.overview,
    gpus: world.nodes.reduce((sum, node) => sum + node.devices.length, 0),
    nodes: world.nodes.length,
    idleSeconds: world.idleSeconds,
    followed: world.followed,
    silentAgents: world.silentAgents,
    parts,
    projects: world.projects.slice(0, 6),
    reasons: reasonsOf(world.queue).slice(0, 5),
    idle: world.idle,
    idleCount: world.idle.length > 0 ? Math.max(9, world.idle.length) : 0,
    advice: world.advice,
    adviceCount: world.advice.length > 0 ? 14 : 0,
  };
}

function gpus(world: World): GpusView {
  const { at, idleSeconds, followed, nodes } = world;
  return { at, lead: world.leads.gpus, idleSeconds, followed, nodes: [...nodes] };
}

function queue(world: World, _parts: readonly string[], asked: Asked): QueueView {
  return {
    at: world.at,
    lead: world.leads.queue,
    reasons: reasonsOf(world.queue),
    projects: names(world),
    ...listed(world.queue, asked, QUEUE_SORTS, refWords),
  };
}

function jobs(world: World, _parts: readonly string[], asked: Asked): JobsView {
  const phases: Record<string, number> = {};
  for (const row of world.jobs) phases[row.phase] = (phases[row.phase] ?? 0) + 1;
  return {
    at: world.at,
    lead: world.leads.jobs,
    phases,
    projects: names(world),
    ...listed(world.jobs, asked, JOB_SORTS, refWords),
  };
}

function projects(world: World): ProjectsView {
  return { at: world.at, lead: world.leads.projects, rows: world.projects };
}

function project(world: World, [name]: readonly string[]): ProjectView | null {
  const row = world.projects.find((each) => each.name === name);
  if (!row) return null;
  const own = world.queue.filter((each) => each.project === name);
  const borrows = row.borrowed > 0 ? `, ${row.borrowed} of them borrowed` : '';
  return {
    at: world.at,
    lead: lead(
      `${row.name} holds ${row.held} GPUs of its quota of ${row.quota}${borrows}.`,
      row.waiting > 0
        ? `[${row.waiting} jobs](/queue?project=${row.name}) wait for ${row.pending} GPUs.`
        : '',
    ),
    row,
    reasons: reasonsOf(own),
    holding: world.jobs.filter((each) => each.project === name && each.held > 0).slice(0, 50),
    waiting: own.slice(0, 50),
  };
}

function sweeps(world: World, _parts: readonly string[], asked: Asked): SweepsView {
  return {
    at: world.at,
    lead: world.leads.sweeps,
    ...listed(world.sweeps, { offset: asked['offset'], limit: asked['limit'] }, [], refWords),
  };
}

function sweep(world: World, [namespace, name]: readonly string[]): SweepView | null {
  const row = world.sweeps.find(({ ref }) => ref.namespace === namespace && ref.name === name);
  if (!row) return null;
  return {
    at: world.at,
    lead: row.best
      ? lead(
          `The best of ${row.ref.name} so far is ${row.best.value}, by trial ${row.best.trial}.`,
          'It runs with 10 trials at once, and has 4 to go before it stops early.',
        )
      : lead(`${row.ref.name} has no result yet.`, row.message),
    row,
    top: row.best ? world.top : [],
    errors: row.counts['failed']
      ? [
          {
            at: AT - 2 * HOUR,
            kind: 'ended',
            words: 'trial 31: OutOfMemory',
            detail: 'asked for 21.4 of its 20 GiB with batch 512',
          },
        ]
      : [],
    command: `kubectl gpu sweep trials ${row.ref.name} -n ${row.ref.namespace}`,
  };
}
