import { useSyncExternalStore } from 'react';

import { ask, Refusal } from './client.ts';
import { currentToken, setToken } from './token.ts';
import type { Me } from './views.ts';

/** Who the reader is, as far as it is known. */
export type Session =
  | { kind: 'asking' }
  | { kind: 'in'; me: Me }
  | { kind: 'out'; words: string }
  | { kind: 'unreachable'; refusal: Refusal };

const listeners = new Set<() => void>();
let session: Session = { kind: 'asking' };

function set(next: Session): void {
  session = next;
  for (const listener of listeners) listener();
}

/** Find out who asks: first without a token, since a proxy before the server may add one. */
export async function begin(): Promise<void> {
  set({ kind: 'asking' });
  try {
    set({ kind: 'in', me: await ask<Me>('/me') });
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    if (error.status === 401) set({ kind: 'out', words: currentToken() ? error.message : '' });
    else set({ kind: 'unreachable', refusal: error });
    if (error.status === 401) setToken('');
  }
}

export async function logIn(token: string): Promise<void> {
  setToken(token);
  await begin();
}

/** The token was good and is not any more, or the reader is done. */
export function logOut(words: string): void {
  setToken('');
  set({ kind: 'out', words });
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useSession(): Session {
  return useSyncExternalStore(subscribe, () => session);
}

/** Who reads; only where somebody is logged in, which is where pages are. */
export function useMe(): Me {
  const now = useSession();
  if (now.kind !== 'in') throw new Error('nobody is logged in');
  return now.me;
}
