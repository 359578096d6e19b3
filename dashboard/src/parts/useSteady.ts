import { useState } from 'react';

import { steady, type Steady } from './steady.ts';

/** `steady`, from one refresh to the next; another `question` is answered in the server's order. */
export function useSteady<T>(
  rows: readonly T[],
  keyOf: (row: T) => string,
  question: string,
): Steady<T> & { settle: () => void } {
  const [kept, setKept] = useState(() => ({ rows, question, made: begin(rows, keyOf) }));
  let { made } = kept;
  if (kept.rows !== rows || kept.question !== question) {
    made = kept.question === question ? steady(kept.made.keys, rows, keyOf) : begin(rows, keyOf);
    setKept({ rows, question, made });
  }
  return { ...made, settle: () => setKept({ rows, question, made: begin(rows, keyOf) }) };
}

function begin<T>(rows: readonly T[], keyOf: (row: T) => string): Steady<T> {
  return { ...steady([], rows, keyOf), fresh: new Set() };
}
