import type { GPUJob, GPUNode } from '../kinds/types.ts';
import { memory } from '../shared.ts';

/** GPUs that one pod holds. */
export interface HeldLine {
  readonly pod: string;
  readonly node: string;
  /** By number and model where the node's object may be read, else by their ids. */
  readonly devices: string;
  /** Per GPU. */
  readonly cap: string;
  readonly isolation: string;
  /** Ratio; null: not known. */
  readonly busy: number | null;
}

export function heldLines({ status }: GPUJob, nodes: readonly GPUNode[]): readonly HeldLine[] {
  const names = deviceNames(nodes);
  return (status?.placements ?? []).map(placed => ({
    pod: placed.pod,
    node: placed.node,
    devices: placed.devices.map(id => names.get(id) ?? id).join(', '),
    cap: memory(placed.memoryMiB),
    isolation: placed.isolation ?? '',
    busy: placed.computePercent === undefined ? null : placed.computePercent / 100,
  }));
}

function deviceNames(nodes: readonly GPUNode[]): ReadonlyMap<string, string> {
  return new Map(
    nodes.flatMap(({ status }) =>
      (status?.devices ?? []).map(each => [each.uuid, `${each.index} (${each.model})`] as const)
    )
  );
}
