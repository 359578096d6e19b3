import { useEffect } from 'react';

import type { Refusal } from '../api/client.ts';
import { begin } from '../api/session.ts';
import { Command } from '../parts/Copy.tsx';

const AGAIN = 5_000;

/** Nobody answers who could say who the reader is: no leader, or no way to it. It tries again. */
export function Unreachable({ refusal }: { refusal: Refusal }) {
  useEffect(() => {
    const timer = setTimeout(() => void begin(), AGAIN);
    return () => clearTimeout(timer);
  }, [refusal]);
  const waiting = refusal.status === 503 || refusal.status === 429;
  return (
    <main id="main" className="alone">
      <h1 className="lead">
        {waiting ? 'Not served just now.' : 'The dashboard cannot be reached.'}{' '}
        <span className="dim">
          {waiting
            ? 'Where no operator leads, one takes over within some seconds; this page tries again by itself.'
            : 'This page tries again by itself.'}
        </span>
      </h1>
      <p role="alert">{refusal.message}</p>
      <p>
        <button type="button" onClick={() => void begin()}>
          Try now
        </button>
      </p>
      <Command about="what an owner looks at first" line="kubectl gpu check" />
    </main>
  );
}
