import type { ChartView } from '../src/api/views.ts';
import { randomly } from './random.ts';
import { partsOf, type World } from './world.ts';

const SPANS: Readonly<Record<string, readonly [seconds: number, step: number]>> = {
  '1h': [3600, 60],
  '24h': [86_400, 600],
  '7d': [7 * 86_400, 3600],
};

/** A history that ends in what is now. */
export function chartView(world: World, span: string, project: string): ChartView | null {
  const [seconds, step] = SPANS[span] ?? [0, 0];
  if (!step) return null;
  const row = world.projects.find((each) => each.name === project);
  if (project && !row) return null;
  const parts = partsOf(world);
  const sum = (...states: string[]) =>
    parts.filter((part) => states.includes(part.state)).reduce((all, part) => all + part.gpus, 0);
  const all = row ? row.quota : parts.reduce((sum_, part) => sum_ + part.gpus, 0);
  const most = row ? (row.limit ?? all) : all;
  const held = row ? row.held : sum('busy', 'part-unused', 'idle', 'unknown');
  const busy = row ? (row.busy ?? 0) : sum('busy');
  const many = Math.floor(seconds / step);
  const random = randomly(span.length + project.length);
  const wave = (index: number, shift: number) =>
    1 + 0.16 * Math.sin(((index - many) * step) / 11_000 + shift) - 0.16 * Math.sin(shift);
  const walk = (end: number, top: number, shift: number) =>
    Array.from({ length: many }, (_, index) =>
      index === many - 1
        ? end
        : Math.max(0, Math.min(top, end * wave(index, shift) * (0.97 + 0.06 * random()))),
    );
  const heldLine = walk(held, most, 0);
  const busyLine = walk(busy, most, 1.2).map((value, index) =>
    Math.min(value, heldLine[index] ?? value),
  );
  const gap = span === '7d' ? 5 : -1;
  const known = <T>(values: T[]): (T | null)[] =>
    values.map((value, index) => (index === gap ? null : value));
  return {
    at: world.at,
    start: world.at - seconds + step,
    stepSeconds: step,
    gpus: Array.from({ length: many }, () => all),
    held: known(heldLine),
    busy: world.followed ? known(busyLine) : heldLine.map(() => null),
    idle: world.followed
      ? known(walk(row ? row.idle : sum('idle'), most, 0.4))
      : heldLine.map(() => null),
    waiting: known(walk(world.queue.length, 1e9, 2)),
    borrowed: known(walk(row?.borrowed ?? 0, most, 2)),
    note: world.followed
      ? gap > 0
        ? 'An hour is missing: no leader kept it.'
        : ''
      : 'Use is not known: agents are not asked.',
  };
}
