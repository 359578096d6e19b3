import type { DeviceRow, NodeRow, ShareRow } from '../api/views.ts';
import { own } from '../format/own.ts';
import { heldOf } from './box.ts';

export interface Group {
  readonly name: string;
  readonly nodes: readonly NodeRow[];
  /** GPUs that a project holds on them; absent: it is no group of a project. */
  readonly held?: number;
}

export const MANY = 24;
const natural = new Intl.Collator('en', { numeric: true });

/**
 * What nodes can be grouped by: the labels that tell some of them apart, the node and the model, and
 * who holds something of their GPUs.
 */
export function groupings(nodes: readonly NodeRow[]): string[] {
  const values = new Map<string, Set<string>>();
  for (const node of nodes) {
    for (const [label, value] of Object.entries(node.labels)) {
      values.set(label, (values.get(label) ?? new Set()).add(value));
    }
  }
  const labels = [...values].filter(([, seen]) => seen.size > 1 && seen.size < nodes.length);
  return ['node', ...labels.map(([label]) => label).sort(natural.compare), 'model', 'project'];
}

/** By what a cluster of this size is looked at first: many nodes by the finest label there is. */
export function usual(nodes: readonly NodeRow[]): string {
  if (nodes.length <= MANY) return 'node';
  const choices = groupings(nodes);
  return ['rack', 'block', 'zone'].find((each) => choices.includes(each)) ?? 'model';
}

export function grouped(nodes: readonly NodeRow[], by: string): Group[] {
  if (by === 'project') return byProject(nodes);
  const groups = new Map<string, NodeRow[]>();
  for (const node of nodes) {
    const name = groupOf(node, by);
    groups.set(name, [...(groups.get(name) ?? []), node]);
  }
  return [...groups]
    .sort(([a], [b]) => Number(a === '') - Number(b === '') || natural.compare(a, b))
    .map(([name, members]) => ({ name: named(name, by), nodes: members }));
}

/** Each with the GPUs of which it holds something, those of several in each of theirs. */
function byProject(nodes: readonly NodeRow[]): Group[] {
  const held = new Map<string, number>();
  for (const share of nodes.flatMap(sharesOf)) {
    const project = projectOf(share);
    held.set(project, (held.get(project) ?? 0) + share.gpus);
  }
  const groups = [...held]
    .sort(([a], [b]) => natural.compare(a, b))
    .map(([project, gpus]) => ({
      name: project,
      held: gpus,
      nodes: having(nodes, (device) => device.shares.some((each) => projectOf(each) === project)),
    }));
  const free = having(nodes, (device) => device.shares.length === 0);
  return free.length > 0 ? [...groups, { name: 'held by nobody', nodes: free }] : groups;
}

function having(nodes: readonly NodeRow[], wanted: (device: DeviceRow) => boolean): NodeRow[] {
  return nodes
    .map((node) => ({ ...node, devices: node.devices.filter(wanted) }))
    .filter((node) => node.devices.length > 0);
}

function sharesOf(node: NodeRow): ShareRow[] {
  return node.devices.flatMap((device) => device.shares);
}

function projectOf(share: ShareRow): string {
  if (share.ref === null) return 'others';
  return share.project || 'without a project';
}

function groupOf(node: NodeRow, by: string): string {
  if (by === 'node') return node.name;
  return by === 'model' ? node.model : (own(node.labels, by) ?? '');
}

function named(value: string, by: string): string {
  if (!value) return `without a ${by}`;
  return by === 'node' || by === 'model' || value.startsWith(by) ? value : `${by} ${value}`;
}

/** How busy the GPUs of some nodes are, of those of which it is known; null: of none. */
export function busyOf(nodes: readonly NodeRow[]): number | null {
  const known = nodes
    .flatMap((node) => node.devices.map((device) => device.busy))
    .filter((busy) => busy !== null);
  return known.length > 0 ? known.reduce((sum, busy) => sum + busy, 0) / known.length : null;
}

export type Only = 'all' | 'idle' | 'free' | 'closed';

/** The nodes that have what is looked for: words in their name, their model or who is there. */
export function matching(nodes: readonly NodeRow[], words: string, only: Only): readonly NodeRow[] {
  const wanted = words.trim().toLowerCase();
  if (!wanted && only === 'all') return nodes;
  return nodes.filter((node) => has(node, only) && (!wanted || said(node).includes(wanted)));
}

function has(node: NodeRow, only: Only): boolean {
  switch (only) {
    case 'all':
      return true;
    case 'idle':
      return node.devices.some((device) => device.shares.some((share) => share.idleSince !== null));
    case 'free':
      return !node.closed && node.devices.some((device) => !device.problem && heldOf(device) < 1);
    case 'closed':
      return node.closed !== '' || node.devices.some((device) => device.problem !== '');
  }
}

function said(node: NodeRow): string {
  const shares = sharesOf(node);
  return [
    node.name,
    node.model,
    ...Object.values(node.labels),
    ...shares.flatMap((share) => [
      share.project,
      share.pod,
      share.ref?.name ?? '',
      share.ref?.namespace ?? '',
    ]),
  ]
    .join('\n')
    .toLowerCase();
}
