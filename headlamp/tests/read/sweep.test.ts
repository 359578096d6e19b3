import { describe, expect, it } from 'vitest';
import { job } from '../../samples/build.ts';
import { JOBS, SEARCH } from '../../samples/cluster.ts';
import { HOSTILE_JOB } from '../../samples/hostile.ts';
import {
  errorsOf,
  parameter,
  parameterNames,
  sweepLine,
  sweepLines,
  topOf,
} from '../../src/read/sweep.ts';
import { sweepWords } from '../../src/read/sweepWords.ts';

const search = (name: string, minutes: number) =>
  job(name, { minutes, spec: { sweep: { algorithm: 'grid' } } });

describe('sweeps', () => {
  it('are the jobs that search, the newest first', () => {
    expect(
      sweepLines([...JOBS, search('old', 900), search('new', 1)]).map(row => row.name)
    ).toEqual(['new', 'hpo-sweep', 'old']);
  });

  it('count trials by state, and what gave no usable result as failed', () => {
    expect(sweepLine(SEARCH).counts).toEqual({
      waiting: 14,
      running: 8,
      succeeded: 31,
      pruned: 5,
      failed: 2,
    });
  });

  it('that nobody has looked at have no count yet', () => {
    expect(sweepLine(search('new', 1))).toMatchObject({ trials: null, counts: {}, best: null });
  });

  it('without an objective have no goal, and with one seek the least unless told otherwise', () => {
    expect(sweepLine(search('plain', 1))).toMatchObject({ metric: '', goal: '' });
    expect(sweepLine(HOSTILE_JOB).goal).toBe('minimize');
  });
});

describe('the page of a sweep', () => {
  it('says how far it is and its best trial', () => {
    expect(sweepWords(sweepLine(SEARCH))).toBe(
      'hpo-sweep has so far ended 38 of 60 trials. Best: trial 23 with val_loss 0.1834.'
    );
  });

  it('says that none has a result yet', () => {
    const status = { phase: 'Failed' as const, sweep: { trials: 1, counts: { failed: 1 } } };
    expect(sweepWords(sweepLine(job('hopeless', { status })))).toBe(
      'hopeless has ended 1 of 1 trial. None has a result yet.'
    );
  });

  it('has the best in the order of the object, and what failed', () => {
    expect(topOf(SEARCH).map(({ trial }) => trial)).toEqual([23, 30, 11, 4]);
    expect(errorsOf(SEARCH)[0]).toEqual({
      trial: 17,
      state: 'ResultMissing',
      message: 'its program wrote no result',
    });
  });

  it('reads parameters by names that others chose', () => {
    const [first, second] = topOf(HOSTILE_JOB);
    expect(parameterNames(topOf(HOSTILE_JOB))).toContain('constructor');
    expect(parameter(first!, 'constructor')).toBe('7');
    expect(parameter(second!, 'constructor')).toBe('–');
  });
});
