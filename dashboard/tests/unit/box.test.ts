import { describe, expect, it } from 'vitest';

import { drawn } from '../../src/parts/box.ts';
import { device, ref, share } from '../../mock/build.ts';
import { partsOf } from '../../mock/world.ts';
import { WORLDS } from '../../mock/worlds.ts';

const mine = ref('a', 'b');

describe('the shares of a GPU', () => {
  it('lie side by side, as wide as they are', () => {
    const made = drawn(
      device(0, [share({ ref: mine, gpus: 0.5 }), share({ ref: mine, gpus: 0.3 })]),
      'use',
    );
    expect(made.map(({ x, width }) => [x, width])).toEqual([
      [0, 0.5],
      [0.5, 0.3],
    ]);
  });

  it('are filled so that the area is what is busy', () => {
    const [half] = drawn(device(0, [share({ ref: mine, gpus: 0.5, busy: 0.28 })]), 'use');
    expect((half?.fill ?? 0) * (half?.width ?? 0)).toBeCloseTo(0.28);
  });

  it('are full, and not more, where they use more than their share', () => {
    const [small] = drawn(device(0, [share({ ref: mine, gpus: 0.3, busy: 0.9 })]), 'use');
    expect(small?.fill).toBe(1);
  });

  it('are told from the idle and from what nobody knows', () => {
    const shares = [
      share({ ref: mine, gpus: 0.2, busy: 0, idleSince: 1 }),
      share({ ref: mine, gpus: 0.2, busy: null }),
      share({ ref: mine, gpus: 0.2, busy: 0 }),
    ];
    expect(drawn(device(0, shares), 'use').map(({ kind }) => kind)).toEqual([
      'idle',
      'unknown',
      'part',
    ]);
  });

  it('stay within the box where they come to more than a GPU', () => {
    const made = drawn(
      device(0, [share({ ref: mine, gpus: 1 }), share({ ref: mine, gpus: 1 })]),
      'use',
    );
    expect(made.reduce((sum, { width }) => sum + width, 0)).toBeCloseTo(1);
  });

  it('are filled by what they hold of their cap, when coloured by memory', () => {
    const [part] = drawn(
      device(0, [share({ ref: mine, gpus: 0.5, memoryMib: 10, capMib: 40 })]),
      'memory',
    );
    expect(part?.fill).toBe(0.25);
  });

  it('are one, as hot as it is, when coloured by heat', () => {
    const shares = [share({ ref: mine, gpus: 0.5 }), share({ ref: mine, gpus: 0.5 })];
    expect(drawn(device(0, shares, { celsius: 61 }), 'heat')).toEqual([
      { x: 0, width: 1, kind: 'part', fill: 0.61 },
    ]);
    expect(drawn(device(0, [], { celsius: null }), 'heat')[0]?.kind).toBe('unknown');
    expect(drawn(device(0, [], { celsius: 120 }), 'heat')[0]?.fill).toBe(1);
  });
});

it.each(Object.keys(WORLDS))('adds up to all GPUs in the made-up world %s', (name) => {
  const world = WORLDS[name]?.();
  if (!world) throw new Error(name);
  const all = world.nodes.reduce((sum, node) => sum + node.devices.length, 0);
  expect(partsOf(world).reduce((sum, part) => sum + part.gpus, 0)).toBeCloseTo(all);
});
