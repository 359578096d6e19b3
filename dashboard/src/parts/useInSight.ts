import { type RefObject, useEffect, useState } from 'react';

import { inSight, type Span } from './window.ts';

/** The rows of a list that are in sight while the page is scrolled. */
export function useInSight(body: RefObject<HTMLElement | null>, row: number, total: number): Span {
  const [span, setSpan] = useState<Span>({ first: 0, last: Math.min(total, 30) });
  useEffect(() => {
    let asked = 0;
    const look = () => {
      asked = 0;
      if (!body.current) return;
      const next = inSight(body.current.getBoundingClientRect().top, innerHeight, row, total);
      setSpan((now) => (now.first === next.first && now.last === next.last ? now : next));
    };
    const soon = () => {
      asked ||= requestAnimationFrame(look);
    };
    soon();
    addEventListener('scroll', soon, { passive: true });
    addEventListener('resize', soon);
    return () => {
      cancelAnimationFrame(asked);
      removeEventListener('scroll', soon);
      removeEventListener('resize', soon);
    };
  }, [body, row, total]);
  return span;
}
