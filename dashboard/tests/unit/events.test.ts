import { expect, it } from 'vitest';

import { EventReader } from '../../src/api/events.ts';

const STREAM =
  ': hello\n\nevent: view\ndata: {"a":\ndata: 1}\n\n: still here\n\nevent: view\r\ndata: 2\r\n\r\n';
const EVENTS = [
  { name: 'view', data: '{"a":\n1}' },
  { name: 'view', data: '2' },
];

it('reads events however the stream is cut', () => {
  for (let size = 1; size <= STREAM.length; size += 1) {
    const reader = new EventReader();
    const read = [];
    for (let at = 0; at < STREAM.length; at += size)
      read.push(...reader.push(STREAM.slice(at, at + size)));
    expect(read, `pieces of ${size}`).toEqual(EVENTS);
  }
});

it('says nothing of an event that is not complete', () => {
  expect(new EventReader().push('event: view\ndata: 1\n')).toEqual([]);
});
