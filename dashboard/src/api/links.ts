import { useSyncExternalStore } from 'react';

import type { Following, LinkState } from './stream.ts';

// The streams that the page has open, and how they are: what the header says is of all of them.
const open = new Map<Following, LinkState>();
const listeners = new Set<() => void>();
const RANK = { refused: 0, live: 1, opening: 2, waiting: 3, lost: 4 } as const;
let worst: LinkState = { kind: 'opening' };

export function report(stream: Following, state: LinkState | null): void {
  if (state) open.set(stream, state);
  else open.delete(stream);
  if (open.size === 0) return; // between two pages: as it was
  const next = [...open.values()].reduce((a, b) => (RANK[b.kind] > RANK[a.kind] ? b : a));
  if (next === worst) return;
  worst = next;
  for (const listener of listeners) listener();
}

export function retryAll(): void {
  for (const stream of open.keys()) stream.retry();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** How the connection is, over all streams of the page. */
export function useLinkState(): LinkState {
  return useSyncExternalStore(subscribe, () => worst);
}
