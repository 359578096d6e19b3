import { useNow } from '../api/clock.ts';
import { retryAll, useLinkState } from '../api/links.ts';
import type { LinkState } from '../api/stream.ts';
import { duration } from '../format/duration.ts';
import { clock } from '../format/moment.ts';

/** In the header: whether what is shown is of this second. */
export function Live() {
  const state = useLinkState();
  return (
    <span className="live" data-kind={state.kind} role="status">
      <i aria-hidden="true" />
      {short(state)}
    </span>
  );
}

function short(state: LinkState): string {
  switch (state.kind) {
    case 'live':
      return 'live';
    case 'opening':
      return 'loading';
    case 'lost':
      return `lost at ${clock(state.since / 1000, state.since / 1000)}`;
    case 'waiting':
      return 'waiting';
    case 'refused':
      return 'not live';
  }
}

/** Below the header while the connection is lost: since when, and what happens next. */
export function LostBanner() {
  const state = useLinkState();
  if (state.kind !== 'lost' && state.kind !== 'waiting') return null;
  return <Banner state={state} />;
}

function Banner({ state }: { state: Extract<LinkState, { retryAt: number }> }) {
  const left = useNow(() => Math.max(0, Math.ceil((state.retryAt - Date.now()) / 1000)));
  const since = useNow(() => clock(state.since / 1000, Date.now() / 1000));
  return (
    <div className="banner" role="region" aria-label="connection">
      <span role="alert">
        {state.kind === 'waiting'
          ? `Not served just now, since ${since}: ${state.words.replace(/\.$/, '')}. `
          : `Connection lost since ${since}. `}
        What you see is from then.
      </span>
      <span className="sub">
        {left > 0 ? `Tries again in ${duration(left)}.` : 'Tries again now.'}
      </span>
      <button type="button" onClick={retryAll}>
        Try now
      </button>
    </div>
  );
}
