import type { DeviceRow, NodeRow, ShareRow } from '../api/views.ts';
import { celsius, gpus, memory, percent } from '../format/number.ts';
import { type ColourBy, heldOf } from './box.ts';

/** Whose a share is, as short as it can be said. */
export function shareName(share: ShareRow): string {
  return share.ref?.name ?? 'others';
}

/** Who is on a device: "frac05 · frac03", "hpo-sweep, 4 pods". */
export function namesOn(device: DeviceRow, closed: boolean): string {
  const pods = new Map<string, number>();
  for (const share of device.shares) {
    pods.set(shareName(share), (pods.get(shareName(share)) ?? 0) + 1);
  }
  if (pods.size === 0) return closed || device.problem ? 'closed' : 'free';
  return [...pods].map(([name, many]) => (many > 1 ? `${name}, ${many} pods` : name)).join(' · ');
}

/**
 * What is held of a device, and its use, of the device's time: "0.8 held" and "62 %"; or how hot it
 * is.
 */
export function figures(
  device: DeviceRow,
  by: ColourBy = 'use',
): readonly [held: string, use: string] {
  const held = heldOf(device);
  if (by === 'heat') return ['', device.celsius === null ? '–' : celsius(device.celsius)];
  if (held === 0) return ['', ''];
  return [`${gpus(held)} held`, device.busy === null ? '–' : percent(device.busy)];
}

/** All that is known of a device in one line, for who does not see the box. */
export function spokenDevice(node: NodeRow, device: DeviceRow): string {
  const parts = [
    `GPU ${device.index} of ${node.name}`,
    device.problem,
    node.closed,
    device.busy === null ? 'use not known' : `used ${percent(device.busy)} of the time`,
    device.celsius === null ? '' : celsius(device.celsius),
    ...device.shares.map(
      (share) =>
        `${shareName(share)} ${gpus(share.gpus)}${share.idleSince === null ? '' : ' idle'}`,
    ),
    `${gpus(device.free)} free`,
  ];
  return parts.filter(Boolean).join(', ');
}

/** "25 of 40 GiB", in the larger one's unit. */
export function ofCap(usedMib: number | null, capMib: number | null): string {
  if (usedMib === null) return capMib === null ? '–' : `– of ${memory(capMib)}`;
  if (capMib === null) return memory(usedMib);
  const cap = memory(capMib);
  if (capMib < 1024) return `${Math.round(usedMib)} of ${cap}`;
  const size = capMib >= 1024 * 1024 ? 1024 * 1024 : 1024;
  return `${Math.round((usedMib / size) * 10) / 10} of ${cap}`;
}

/** "A100 80 GB": the model and what memory it is sold with. */
export function modelWords(node: { model: string; memoryMib: number }): string {
  const model = node.model.replace(/^NVIDIA[- ]/, '').replaceAll('-', ' ');
  return /\d ?GB?\b/i.test(model) ? model : `${model} ${memory(node.memoryMib)}`;
}
