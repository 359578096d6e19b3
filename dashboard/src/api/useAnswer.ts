import { useEffect, useState } from 'react';

import { ask, Refusal } from './client.ts';
import { logOut } from './session.ts';

export interface Answered<T> {
  readonly answer: T | null;
  readonly refusal: Refusal | null;
}

/** Ask once, and again each `seconds` where the page is in sight. An empty path is no question. */
export function useAnswer<T>(path: string, seconds = 0): Answered<T> {
  const [answered, setAnswered] = useState<Answered<T> & { of: string }>({
    answer: null,
    refusal: null,
    of: '',
  });

  useEffect(() => {
    if (!path) return;
    const ended = new AbortController();
    const load = async () => {
      if (document.visibilityState === 'hidden') return;
      try {
        const answer = await ask<T>(path, { signal: ended.signal });
        if (!ended.signal.aborted) setAnswered({ answer, refusal: null, of: path });
      } catch (error) {
        if (!(error instanceof Refusal)) return;
        if (error.status === 401) {
          logOut(error.message);
          return;
        }
        setAnswered((before) => ({
          answer: before.of === path ? before.answer : null,
          refusal: error,
          of: path,
        }));
      }
    };
    const again = () => void load();
    again();
    const timer = seconds > 0 ? setInterval(again, seconds * 1000) : undefined;
    if (seconds > 0) document.addEventListener('visibilitychange', again);
    return () => {
      ended.abort();
      clearInterval(timer);
      document.removeEventListener('visibilitychange', again);
    };
  }, [path, seconds]);

  return answered.of === path ? answered : { answer: null, refusal: null };
}
