import { describe, expect, it } from 'vitest';

import { busyOf, grouped, groupings, matching, usual } from '../../src/parts/groups.ts';
import { device, node, ref, share } from '../../mock/build.ts';

const busy = (value: number | null) =>
  device(0, [share({ ref: ref('team', 'train'), gpus: 1, busy: value })]);
const NODES = [
  node('n10', [busy(0.2)], { labels: { rack: '10', region: 'r' } }),
  node('n2', [busy(0.4)], { labels: { rack: '2', region: 'r' } }),
  node('n3', [busy(null)], { labels: { rack: '2', region: 'r' } }),
  node('n4', [device(0, [])], { labels: {}, closed: 'cordoned' }),
];

describe('nodes', () => {
  it('can be grouped by labels that tell them apart', () => {
    expect(groupings(NODES)).toEqual(['node', 'rack', 'model', 'project']);
  });

  it('are grouped in the order that people count in, those without a label last', () => {
    expect(grouped(NODES, 'rack').map((group) => group.name)).toEqual([
      'rack 2',
      'rack 10',
      'without a rack',
    ]);
  });

  it('are grouped by who holds something of a GPU, which may be several', () => {
    const both = device(1, [
      share({ ref: ref('b', 'x'), gpus: 0.5 }),
      share({ ref: ref('a', 'y'), gpus: 0.25 }),
      share({ ref: null, gpus: 0.25 }),
    ]);
    const nodes = [node('n1', [device(0, []), both]), node('n2', [device(0, [])])];
    const found = grouped(nodes, 'project').map(({ name, held, nodes: there }) => [
      name,
      held,
      there
        .map((each) => `${each.name}/${each.devices.map(({ index }) => index).join()}`)
        .join(' '),
    ]);
    expect(found).toEqual([
      ['a', 0.25, 'n1/1'],
      ['b', 0.5, 'n1/1'],
      ['others', 0.25, 'n1/1'],
      ['held by nobody', undefined, 'n1/0 n2/0'],
    ]);
  });

  it('are looked at one by one where they are few, by their racks where they are many', () => {
    const many = Array.from({ length: 60 }, (_, index) =>
      node(`n${index}`, [], { labels: { rack: String(index % 5) } }),
    );
    expect([usual(NODES), usual(many)]).toEqual(['node', 'rack']);
  });

  it('are as busy as those of which it is known', () => {
    expect(busyOf(NODES)).toBeCloseTo(0.2);
    expect(busyOf(NODES.slice(2, 3))).toBeNull();
  });

  it('are found by who is on them, and by what is looked for', () => {
    const found = (words: string, only: 'all' | 'idle' | 'free' | 'closed') =>
      matching(NODES, words, only).map((each) => each.name);
    expect(found('TRAIN', 'all')).toEqual(['n10', 'n2', 'n3']);
    expect(found('', 'closed')).toEqual(['n4']);
    expect(found('', 'free')).toEqual([]);
  });
});
