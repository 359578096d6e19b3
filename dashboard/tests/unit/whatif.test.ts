import { expect, it } from 'vitest';

import { questionOf } from '../../src/parts/question.ts';

const BLANK = { manifest: '', likeNode: '', nodes: '1', project: '', quota: '' };

it('asks of the first node there is where none is chosen', () => {
  expect(questionOf('nodes', BLANK, 'dell-1', '')).toMatchObject({
    likeNode: 'dell-1',
    nodes: 1,
    quota: null,
  });
});

it.each([
  ['nodes', { ...BLANK, nodes: '0' }],
  ['nodes', { ...BLANK, nodes: '1.5' }],
  ['quota', BLANK],
  ['quota', { ...BLANK, quota: '-1' }],
  ['job', { ...BLANK, manifest: '  ' }],
] as const)('asks nothing where something is missing: %s', (kind, draft) => {
  expect(questionOf(kind, draft, 'dell-1', 'vision')).toBeNull();
});

it('can ask of a quota of nothing', () => {
  expect(questionOf('quota', { ...BLANK, quota: '0' }, '', 'vision')).toMatchObject({
    project: 'vision',
    quota: 0,
  });
});
