import { describe, expect, it } from 'vitest';

import { isOurs } from '../../src/router/address.ts';
import { pick } from '../../src/router/pick.ts';
import { patched } from '../../src/router/query.ts';
import { route } from '../../src/router/routes.ts';

describe('an address', () => {
  it.each([
    ['/', { page: 'overview' }],
    ['/gpus', { page: 'gpus' }],
    ['/gpus/dell-1/3', { page: 'device', node: 'dell-1', index: 3 }],
    ['/jobs/compare', { page: 'compare' }],
    ['/jobs/a/GPUJob/compare', { page: 'job', namespace: 'a', kind: 'GPUJob', name: 'compare' }],
    ['/jobs/a%2Fb/Pod/x', { page: 'job', namespace: 'a/b', kind: 'Pod', name: 'x' }],
    ['/projects/vision/', { page: 'project', name: 'vision' }],
    ['/sweeps/a/b', { page: 'sweep', namespace: 'a', name: 'b' }],
    ['/gpus/dell-1/x', { page: 'nowhere' }],
    ['/jobs/a/b', { page: 'nowhere' }],
    ['/%E0%A4%A', { page: 'nowhere' }],
    ['/constructor', { page: 'nowhere' }],
  ])('%s leads to its page', (path, page) => {
    expect(route(path)).toEqual(page);
  });

  it.each([
    'javascript:alert(1)',
    '//evil.example/',
    '/\\evil.example',
    'https://evil.example',
    'data:text/html,x',
    '',
  ])('%j is not followed', (to) => {
    expect(isOurs(to)).toBe(false);
  });
});

it('changes some parameters and leaves the others', () => {
  expect(patched('q=a&sort=x', { q: null, project: 'v w' })).toBe('sort=x&project=v+w');
});

it('asks the same question by the same address, in whatever order it is written', () => {
  const names = ['q', 'sort'];
  expect(pick(new URLSearchParams('sort=x&q=a&span=1h'), names)).toBe(
    pick(new URLSearchParams('q=a&sort=x'), names),
  );
});
