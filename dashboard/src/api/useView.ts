import { useEffect, useRef, useState } from 'react';

import type { Refusal } from './client.ts';
import { setServerTime } from './clock.ts';
import { report } from './links.ts';
import { logOut } from './session.ts';
import { share } from './share.ts';
import { follow, type Following, type LinkState } from './stream.ts';

export interface Viewed<T> {
  /** The last that came; of the question before, until the first of this one comes. */
  readonly view: T | null;
  /** The question that it answers. */
  readonly of: string;
  readonly refusal: Refusal | null;
}

// Out of sight for so long, a page lets go of its stream: browsers open six to a server, in all tabs.
const HIDDEN = 5_000;

/** Follow a view as long as the component is there. An empty path is no question. */
export function useView<T extends { at: number }>(path: string): Viewed<T> {
  const [viewed, setViewed] = useState<Viewed<T>>({ view: null, of: '', refusal: null });
  const last = useRef<T | null>(null);

  useEffect(() => {
    if (!path) return;
    let stream: Following | null = null;
    let letGo: ReturnType<typeof setTimeout> | undefined;

    const onView = (next: unknown) => {
      const view = share(last.current, next as T);
      setServerTime(view.at);
      last.current = view;
      setViewed({ view, of: path, refusal: null });
    };
    const start = () => {
      let own: Following | null = null;
      const early: LinkState[] = [];
      const onState = (state: LinkState) => {
        if (state.kind === 'refused') {
          if (state.refusal.status === 401) {
            logOut(state.refusal.message);
            return;
          }
          setViewed({ view: null, of: path, refusal: state.refusal });
        }
        if (own) report(own, state);
        else early.push(state);
      };
      own = follow(path, { onView, onState });
      for (const state of early) report(own, state);
      return own;
    };
    const stop = () => {
      stream?.stop();
      if (stream) report(stream, null);
      stream = null;
    };
    const look = () => {
      clearTimeout(letGo);
      if (document.visibilityState === 'hidden') letGo = setTimeout(stop, HIDDEN);
      else stream ??= start();
    };

    look();
    document.addEventListener('visibilitychange', look);
    return () => {
      document.removeEventListener('visibilitychange', look);
      clearTimeout(letGo);
      stop();
    };
  }, [path]);

  return viewed;
}
