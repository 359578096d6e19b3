import { describe, expect, it } from 'vitest';
import { before, project } from '../../samples/build.ts';
import { PROJECTS } from '../../samples/cluster.ts';
import { amount } from '../../src/read/amount.ts';
import { projectLine } from '../../src/read/project.ts';

const condition = (type: string, status: 'True' | 'False' | 'Unknown', message: string) => ({
  type,
  status,
  message,
  reason: 'Word',
  lastTransitionTime: before(1),
});

describe('a project', () => {
  it('has its GPUs as numbers', () => {
    expect(PROJECTS.map(projectLine)[0]).toMatchObject({
      name: 'vision',
      quota: 6,
      limit: 8,
      held: 7.5,
      borrowed: 1.5,
      fairShare: 7.2,
      pending: 1,
      waiting: 1,
      known: true,
      problem: '',
    });
  });

  it('that nobody has looked at holds nothing that is known', () => {
    expect(projectLine(project('new', { quota: 2 }))).toMatchObject({
      held: 0,
      known: false,
      limit: null,
      fairShare: null,
      pending: null,
    });
  });

  it('says what is wrong with it, and nothing of what is well', () => {
    const conditions = [
      condition('Accepted', 'False', 'Its namespace is another’s.'),
      condition('QuotaCovered', 'True', 'All is covered.'),
      condition('SetAside', 'True', 'The planner stumbled.'),
    ];
    expect(projectLine(project('odd', { quota: 1 }, { conditions })).problem).toBe(
      'Its namespace is another’s. The planner stumbled.'
    );
  });
});

describe('an amount', () => {
  it.each([
    ['1.5', 1.5],
    ['0', 0],
    ['', null],
    [' ', null],
    ['many', null],
    ['Infinity', null],
    [undefined, null],
  ])('%s is %s', (text, value) => {
    expect(amount(text)).toBe(value);
  });
});
