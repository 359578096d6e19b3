import { useSyncExternalStore } from 'react';

/** The address of the page is all its state: this is the only place that reads or writes it. */
export interface Address {
  readonly path: string;
  readonly query: string;
}

const listeners = new Set<() => void>();
let current = read();

function read(): Address {
  if (typeof location === 'undefined') return { path: '/', query: '' };
  return { path: location.pathname, query: location.search.slice(1) };
}

function changed(): void {
  const next = read();
  if (next.path === current.path && next.query === current.query) return;
  current = next;
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  if (listeners.size === 0) addEventListener('popstate', changed);
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) removeEventListener('popstate', changed);
  };
}

/** Go to a page of ours. `replace`: the one that is left is not worth coming back to. */
export function go(to: string, how: { replace?: boolean } = {}): void {
  if (!isOurs(to)) return;
  if (how.replace) history.replaceState(null, '', to);
  else history.pushState(null, '', to);
  const before = current.path;
  changed();
  if (current.path !== before) scrollTo(0, 0);
}

/** Whether an address stays within the dashboard; anything else is not followed. */
export function isOurs(to: string): boolean {
  return to.startsWith('/') && !to.startsWith('//') && !to.startsWith('/\\');
}

export function useAddress(): Address {
  return useSyncExternalStore(subscribe, () => current);
}
