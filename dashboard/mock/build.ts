import type {
  DeviceRow,
  JobRow,
  Lead,
  NodeRow,
  LeadPiece,
  ProjectRow,
  QueueRow,
  WorkRef,
  ShareRow,
  SweepRow,
} from '../src/api/views.ts';

// The moment that all worlds begin with: an afternoon in March, so that pictures stay the same.
export const AT = Date.UTC(2026, 2, 12, 14, 14, 0) / 1000;
export const MINUTE = 60;
export const HOUR = 3600;
export const DAY = 86_400;

/** A sentence; what is in [brackets](/to) is a link. */
export function pieces(sentence: string): LeadPiece[] {
  if (!sentence) return [];
  return sentence
    .split(/(\[[^\]]+\]\([^)]*\))/)
    .filter(Boolean)
    .map((part) => {
      const link = /^\[([^\]]+)\]\(([^)]*)\)$/.exec(part);
      return link ? { text: link[1] ?? '', to: link[2] ?? '' } : { text: part, to: '' };
    });
}

export function lead(first: string, then = ''): Lead {
  return { first: pieces(first), then: pieces(then) };
}

export const ref = (namespace: string, name: string, kind = 'GPUJob'): WorkRef => ({
  namespace,
  kind,
  name,
});

export function share(part: Partial<ShareRow> & { ref: WorkRef | null; gpus: number }): ShareRow {
  return {
    project: part.ref?.namespace ?? '',
    pod: part.ref ? `${part.ref.name}-0` : '',
    busy: 0.5,
    memoryMib: Math.round(part.gpus * 81_920 * 0.6),
    capMib: Math.round(part.gpus * 81_920),
    idleSince: null,
    ...part,
  };
}

export function device(
  index: number,
  shares: readonly ShareRow[],
  part: Partial<DeviceRow> = {},
): DeviceRow {
  const held = shares.reduce((sum, each) => sum + each.gpus, 0);
  const known = shares.every((each) => each.busy !== null);
  const memory = shares.reduce((sum, each) => sum + (each.memoryMib ?? 0), 0);
  return {
    index,
    uuid: `GPU-5d1f0${index}c4-7a31-4e0b-9c1e-0d2f8a6b1e0${index}`,
    model: 'NVIDIA-A100-SXM4-80GB',
    memoryMib: 81_920,
    problem: '',
    free: Math.max(0, Math.round((1 - held) * 1000) / 1000),
    busy: known
      ? Math.min(
          1,
          shares.reduce((sum, each) => sum + (each.busy ?? 0), 0),
        )
      : null,
    memoryUsedMib: known ? Math.round(memory) : null,
    celsius: known ? 34 + Math.round(held * 30) + index : null,
    shares,
    ...part,
  };
}

export function node(
  name: string,
  devices: readonly DeviceRow[],
  part: Partial<NodeRow> = {},
): NodeRow {
  return {
    name,
    model: 'NVIDIA-A100-SXM4-80GB',
    memoryMib: 81_920,
    closed: '',
    agent: 'ok',
    labels: {},
    free: devices.reduce((sum, each) => sum + each.free, 0),
    cpuFree: 40,
    cpuTotal: 128,
    devices,
    ...part,
  };
}

export function job(part: Partial<JobRow> & { ref: WorkRef }): JobRow {
  const held = part.held ?? 0;
  return {
    project: part.ref.namespace,
    type: '',
    phase: 'Running',
    reason: '',
    message: '',
    asked: held || 1,
    held,
    running: 1,
    succeeded: 0,
    pods: 1,
    node: 'dell-1',
    created: AT - 3 * HOUR,
    ended: null,
    busy: held > 0 ? 0.5 : null,
    memoryMib: held > 0 ? Math.round(held * 81_920 * 0.6) : null,
    idleSince: null,
    advice: '',
    sweep: false,
    ...part,
  };
}

export function queued(
  part: Partial<QueueRow> & { ref: WorkRef; reason: string; message: string },
): QueueRow {
  return {
    project: part.ref.namespace,
    type: '',
    priority: '50',
    position: 1,
    each: '1',
    pods: 1,
    gpus: 1,
    since: AT - 10 * MINUTE,
    mends: false,
    ...part,
  };
}

export function project(part: Partial<ProjectRow> & { name: string }): ProjectRow {
  return {
    quota: 8,
    limit: null,
    fairShare: part.quota ?? 8,
    held: 0,
    borrowed: 0,
    borrowedSince: null,
    busy: 0,
    idle: 0,
    pending: 0,
    waiting: 0,
    running: 0,
    namespaces: [part.name],
    problem: '',
    ...part,
  };
}

export function sweep(part: Partial<SweepRow> & { ref: WorkRef }): SweepRow {
  return {
    project: part.ref.namespace,
    phase: 'Running',
    objective: 'val_loss',
    goal: 'minimize',
    trials: 200,
    counts: {},
    best: null,
    message: '',
    created: AT - 5 * HOUR,
    ...part,
  };
}
