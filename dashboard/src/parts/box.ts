import type { DeviceRow, ShareRow } from '../api/views.ts';

export type ColourBy = 'use' | 'memory' | 'heat';

/** A box that is filled by heat is full at so many degrees Celsius. */
export const FULL_CELSIUS = 100;

/** A share as it is drawn: where it begins and how wide it is, both of 1, and how high it is filled. */
export interface Drawn {
  readonly x: number;
  readonly width: number;
  readonly kind: 'part' | 'idle' | 'unknown';
  readonly fill: number;
}

/**
 * The shares of a device, side by side. The width is the share; the fill is the use of its own
 * processes as a part of its share, or its memory as a part of what it may hold. Heat is that of all
 * of it.
 */
export function drawn(device: DeviceRow, by: ColourBy): Drawn[] {
  if (by === 'heat') {
    const { celsius } = device;
    const kind = celsius === null ? 'unknown' : 'part';
    return [{ x: 0, width: 1, kind, fill: within((celsius ?? 0) / FULL_CELSIUS) }];
  }
  const all = device.shares.reduce((sum, share) => sum + share.gpus, 0);
  const scale = all > 1 ? 1 / all : 1;
  let x = 0;
  return device.shares.map((share) => {
    const width = share.gpus * scale;
    const left = x;
    x += width;
    if (by === 'use' && share.idleSince !== null) return { x: left, width, kind: 'idle', fill: 0 };
    const fill = by === 'use' ? useFill(share) : memoryFill(share, device);
    if (fill === null) return { x: left, width, kind: 'unknown', fill: 0 };
    return { x: left, width, kind: 'part', fill: within(fill) };
  });
}

function within(fill: number): number {
  return Math.min(1, Math.max(0, fill));
}

/** So that the filled area is what the strip counts as busy: the lesser of share and use. */
function useFill(share: ShareRow): number | null {
  return share.busy === null || share.gpus <= 0 ? share.busy : share.busy / share.gpus;
}

function memoryFill(share: ShareRow, device: DeviceRow): number | null {
  const cap = share.capMib ?? share.gpus * device.memoryMib;
  return share.memoryMib === null || cap <= 0 ? null : share.memoryMib / cap;
}

export function heldOf(device: DeviceRow): number {
  return device.shares.reduce((sum, share) => sum + share.gpus, 0);
}
