import { renderToStaticMarkup } from 'react-dom/server';
import { describe, expect, it } from 'vitest';

import { Lead } from '../../src/parts/Lead.tsx';
import { hidden } from '../../src/parts/Page.tsx';
import { asksFor } from '../../src/parts/queueColumns.tsx';
import { Strip } from '../../src/parts/Strip.tsx';
import { Unknown } from '../../src/parts/Unknown.tsx';
import { EVIL } from '../../mock/worlds/others.ts';

describe('the sentence', () => {
  it('has links where its pieces lead somewhere, and text elsewhere', () => {
    const lead = {
      first: [
        { text: '12 jobs', to: '/queue' },
        { text: ' wait.', to: '' },
      ],
      then: [],
    };
    expect(renderToStaticMarkup(<Lead lead={lead} />)).toBe(
      '<p class="lead"><a class="q" href="/queue">12 jobs</a><span> wait.</span></p>',
    );
  });

  it('follows no link that leads elsewhere, and shows markup as text', () => {
    const lead = {
      first: [
        { text: EVIL, to: 'javascript:alert(1)' },
        { text: 'x', to: '//evil' },
      ],
      then: [],
    };
    const html = renderToStaticMarkup(<Lead lead={lead} />);
    expect(html).not.toContain('href');
    expect(html).not.toContain('<img');
  });
});

describe('the strip', () => {
  it('names its parts with their numbers, and leaves out what there is none of', () => {
    const parts = [
      { state: 'busy', gpus: 19, note: '' },
      { state: 'free', gpus: 0, note: '' },
      { state: 'closed', gpus: 2, note: 'dell-5 is cordoned' },
    ] as const;
    const html = renderToStaticMarkup(<Strip parts={parts} idleSeconds={3600} />);
    expect(html.replaceAll(/<[^>]+>/g, '')).toBe('19 busy2 closed: dell-5 is cordoned');
  });
});

it('says why something is not known, and shows a dash', () => {
  const html = renderToStaticMarkup(<Unknown why="because" />);
  expect(html).toContain('title="because"');
  expect(html.replaceAll(/<[^>]+>/g, '')).toBe('–not known: because');
});

it('tells a reader what they are not shown', () => {
  const me = { user: 'u', all: false, actions: false, version: '' };
  expect(hidden({ ...me, namespaces: [] })).toMatch(/^You may see no namespace/);
  expect(hidden({ ...me, namespaces: ['a', 'b'] })).toMatch(/^You see the work in a, b;/);
  expect(hidden({ ...me, namespaces: ['a', 'b', 'c', 'd'] })).toMatch(
    /^You see the work in 4 namespaces;/,
  );
});

it('says what is asked for, a pod at a time', () => {
  expect([asksFor({ pods: 1, each: '0.5' }), asksFor({ pods: 4, each: '8 GiB' })]).toEqual([
    '0.5',
    '4 × 8 GiB',
  ]);
});
