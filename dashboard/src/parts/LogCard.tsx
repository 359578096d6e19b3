import { useState } from 'react';

import { askText } from '../api/client.ts';
import type { Placed } from '../api/views.ts';
import { clockSeconds } from '../format/moment.ts';
import { Card } from './Card.tsx';

const LINES = 200;

/** The last lines of a pod, read with the reader's own rights when they ask for them. */
export function LogCard({ namespace, placed }: { namespace: string; placed: readonly Placed[] }) {
  const [pod, setPod] = useState(placed[0]?.pod ?? '');
  const [state, setState] = useState({ busy: false, text: '', wrong: '', at: 0 });
  const load = async () => {
    setState({ busy: true, text: '', wrong: '', at: 0 });
    try {
      const path = [namespace, pod].map(encodeURIComponent).join('/');
      const text = await askText(`/logs/${path}?lines=${LINES}`);
      setState({ busy: false, text, wrong: '', at: Date.now() / 1000 });
    } catch (error) {
      const wrong = error instanceof Error ? error.message : String(error);
      setState({ busy: false, text: '', wrong, at: 0 });
    }
  };
  return (
    <Card title="Log" about={`the last ${LINES} lines, read with your own rights`}>
      <div className="filters">
        {placed.length > 1 ? (
          <select aria-label="pod" value={pod} onChange={(event) => setPod(event.target.value)}>
            {placed.map((each) => (
              <option key={each.pod}>{each.pod}</option>
            ))}
          </select>
        ) : (
          <span>{pod}</span>
        )}
        <button type="button" disabled={state.busy} onClick={() => void load()}>
          {state.at > 0 ? 'Read anew' : 'Read it'}
        </button>
        {state.at > 0 && <span className="sub">as of {clockSeconds(state.at, state.at)}</span>}
      </div>
      {state.wrong && (
        <p className="bad" role="alert">
          {state.wrong}
        </p>
      )}
      {state.at > 0 && (
        <pre className="log" tabIndex={0} aria-label={`log of ${pod}`}>
          {state.text || 'It has written nothing.'}
        </pre>
      )}
    </Card>
  );
}
