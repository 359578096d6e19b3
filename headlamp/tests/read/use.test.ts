import { describe, expect, it } from 'vitest';
import { USAGES } from '../../samples/cluster.ts';
import { leftOut, linesOfUse, sumOfUse, workloadOf } from '../../src/read/use.ts';
import { usedInAll, usedNow } from '../../src/read/used.ts';
import { wordsOfUse } from '../../src/read/wordsOfUse.ts';

const plain = (words: string) => words.replaceAll('\u00a0', ' ');
const BERT = { namespace: 'vision', name: 'bert-finetune' };

describe('use', () => {
  it('has first who holds and does nothing, then who holds most, then what has ended', () => {
    expect(linesOfUse(USAGES).map(({ name }) => name)).toEqual([
      'notebook-anna',
      'captioner',
      'bert-finetune',
      'probe',
    ]);
  });

  it('has ratios, hours and MiB', () => {
    expect(linesOfUse(USAGES)[2]).toMatchObject({
      busyNow: 0.28,
      busyMean: 0.31,
      gpuHours: 1,
      usedGpuHours: 0.31,
      memoryPeak: 9216,
      memoryCap: 20_163,
      advice: 'ADD_WORKERS',
    });
  });

  it('does not know what nobody told, which is not nothing', () => {
    expect(linesOfUse(USAGES)[3]).toMatchObject({
      busyNow: null,
      busyMean: null,
      usedGpuHours: null,
      memoryPeak: null,
    });
  });

  it('is not read from objects of another name', () => {
    const other = { metadata: { name: 'mine', namespace: 'vision' }, status: USAGES[0]!.status! };
    expect(linesOfUse([other])).toEqual([]);
  });

  it('adds up without rounding', () => {
    const lines = linesOfUse(USAGES).map(line => ({ ...line, gpus: 0.1 }));
    expect(sumOfUse(lines)).toEqual({ held: 0.3, idle: 0.1, idleWorkloads: 1 });
  });

  it('counts what the objects leave out', () => {
    const of = (omitted: number) => ({ metadata: { name: 'current' }, status: { omitted } });
    expect(leftOut([of(3), of(4), { metadata: { name: 'current' } }])).toBe(7);
  });
});

describe('use in a sentence', () => {
  it.each([
    [{ held: 0, idle: 0, idleWorkloads: 0 }, 0, 'No GPU is held now.'],
    [{ held: 1, idle: 0, idleWorkloads: 0 }, 0, '1 GPU is held, and none of it idle.'],
    [
      { held: 5.8, idle: 0.3, idleWorkloads: 1 },
      0,
      '5.8 GPUs are held, 0.3 GPU of that by 1 workload that runs no kernel.',
    ],
    [
      { held: 9, idle: 4, idleWorkloads: 3 },
      12,
      '9 GPUs are held, 4 GPUs of that by 3 workloads that run no kernel. 12 more are left out, as their objects would be too large.',
    ],
  ])('%o', (sum, omitted, words) => {
    expect(plain(wordsOfUse(sum, omitted))).toBe(words);
  });
});

describe('use of one job', () => {
  it('is that of its uid', () => {
    expect(workloadOf(USAGES, { ...BERT, uid: 'uid-of-bert-finetune' })?.gpus).toBe(0.5);
  });

  it('is not that of one of the same name before it', () => {
    expect(workloadOf(USAGES, { ...BERT, uid: 'another' })).toBeNull();
  });

  it('is not that of another namespace', () => {
    expect(
      workloadOf(USAGES, { ...BERT, namespace: 'lab', uid: 'uid-of-bert-finetune' })
    ).toBeNull();
  });

  it('names what each percentage is of', () => {
    const workload = workloadOf(USAGES, { ...BERT, uid: 'uid-of-bert-finetune' })!;
    expect(usedNow(workload).map(([name, value]) => [name, plain(value)])).toEqual([
      ['Busy now', '28 %'],
      ['Busy since it began', '31 %'],
      ['Half of the time at most', '30 %'],
      ['95 % of the time at most', '44 %'],
      ['Most memory of its cap', '9 GiB of 19.7 GiB'],
      ['GPU-hours used of those held', '0.31 of 1'],
    ]);
  });

  it('that has ended has dashes for what is not known', () => {
    const said = usedInAll({ gpuSeconds: 7200 });
    expect(said).toContainEqual(['Busy while it held GPUs', '–']);
    expect(said).toContainEqual(['GPU-hours used of those held', '– of 2']);
  });
});
