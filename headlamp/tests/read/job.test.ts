import { describe, expect, it } from 'vitest';
import { job } from '../../samples/build.ts';
import { JOBS, RUNNING, WAITING } from '../../samples/cluster.ts';
import { inOrder, jobLine, phaseWords } from '../../src/read/job.ts';
import { facts, whyWords } from '../../src/read/why.ts';

describe('a line of the list', () => {
  it('says what kubectl prints', () => {
    expect(jobLine(WAITING)).toMatchObject({
      name: 'llava-eval',
      namespace: 'vision',
      project: 'vision',
      gpu: '0/1',
      pods: '0/0/1',
      reason: 'WaitingForQuota',
      sweep: false,
    });
  });

  it('is there before the operator has looked at the job', () => {
    const line = jobLine(job('new'));
    expect(line).toMatchObject({ phase: '', gpu: '', message: '' });
    expect(phaseWords(line)).toBe('not looked at yet');
  });

  it('says a reason once', () => {
    expect(phaseWords({ phase: 'Suspended', reason: 'Suspended' })).toBe('Suspended');
    expect(phaseWords({ phase: 'Pending', reason: 'Fragmented' })).toBe('Pending · Fragmented');
  });
});

describe('the order of the list', () => {
  it('has what waits first and what has succeeded last, of these the newest first', () => {
    expect(inOrder(JOBS.map(jobLine)).map(({ name }) => name)).toEqual([
      'llava-eval',
      'asr-large',
      'hpo-sweep',
      'bert-finetune',
      'notebook-anna',
      'night-run',
      'segmenter',
      'tts-train',
    ]);
  });
});

describe('why', () => {
  it('is the operator’s own sentence', () => {
    expect(whyWords(WAITING)).toBe(WAITING.status?.message);
  });

  it.each([
    [{ phase: 'Running' as const }, 'Its pods run, and none waits.'],
    [{ phase: 'Succeeded' as const }, 'Every index has succeeded.'],
    [{ phase: 'Failed' as const, reason: 'JobFailed' }, 'Failed · JobFailed'],
    [{}, 'The operator has not looked at it yet. Does it run?'],
  ])('%o without a message is a sentence too', (status, words) => {
    expect(whyWords(job('one', { status }))).toBe(words);
  });

  it('says only what is known', () => {
    expect(facts(job('new'))).toEqual([['Type', 'training']]);
  });

  it('says where it stands in the queue, and what evictions cost', () => {
    expect(facts(WAITING)).toContainEqual(['Place in the queue', 'next of its project']);
    const said = facts(RUNNING).map(fact => fact.join(': ').replaceAll('\u00a0', ' '));
    expect(said).toContain('Evictions: 2 times, 22 min of GPU time lost');
    expect(said).toContain('Priority: 50');
  });
});
