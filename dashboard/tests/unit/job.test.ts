import { expect, it } from 'vitest';

import { jobPath, parseRef, podWords, refWord, sameRef } from '../../src/format/job.ts';

const REF = { namespace: 'a', kind: 'GPUJob', name: 'b' };

it('names a job in one word, and reads it again', () => {
  expect(parseRef(refWord(REF))).toEqual(REF);
});

it.each(['', 'a/b', 'a/b/c/d', '//'])('reads no job out of %j', (word) => {
  expect(parseRef(word)).toBeNull();
});

it('keeps an address in one piece, whatever a name holds', () => {
  expect(jobPath({ namespace: 'a/b', kind: 'K', name: '?x#' })).toBe('/jobs/a%2Fb/K/%3Fx%23');
});

it('tells the pods that run, or that succeeded', () => {
  expect(podWords({ running: 2, succeeded: 1, pods: 4 })).toBe('2 of 4 pods run');
  expect(podWords({ running: 0, succeeded: 1, pods: 1 })).toBe('1 of 1 pod succeeded');
});

it('is the same as itself alone', () => {
  expect([
    sameRef(REF, { ...REF }),
    sameRef(REF, { ...REF, kind: 'Pod' }),
    sameRef(REF, null),
  ]).toEqual([true, false, false]);
});
