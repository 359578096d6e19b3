import { useSyncExternalStore } from 'react';

// Ages are told by the server's clock: the reader's may be wrong.
let ahead = 0;
let ticking: ReturnType<typeof setInterval> | undefined;
const listeners = new Set<() => void>();

/** A view says when it was made. */
export function setServerTime(at: number): void {
  ahead = at - Date.now() / 1000;
}

/** Seconds since the epoch, as the server counts them. */
export function serverNow(): number {
  return Date.now() / 1000 + ahead;
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  ticking ??= setInterval(() => {
    if (document.visibilityState === 'hidden') return;
    for (const each of listeners) each();
  }, 1000);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    clearInterval(ticking);
    ticking = undefined;
  };
}

/** What `say` makes of the time now, each second anew; the component is drawn when that differs. */
export function useNow<T extends string | number>(say: (now: number) => T): T {
  const now = () => say(serverNow());
  return useSyncExternalStore(subscribe, now, now);
}
