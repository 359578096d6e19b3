import { useState } from 'react';

import { act } from '../api/client.ts';
import { useMe } from '../api/session.ts';
import type { JobView } from '../api/views.ts';
import { gpuWords } from '../format/number.ts';

/** Suspend or resume a job, where the server does so at all; asked once more before it is done. */
export function Actions({ job }: { job: JobView }) {
  const me = useMe();
  const [asked, setAsked] = useState(false);
  const [state, setState] = useState({ busy: false, wrong: '' });
  if (!me.actions || !job.maySuspend) return null;
  const { namespace, name } = job.row.ref;
  const verb = job.suspended ? 'resume' : 'suspend';
  const title = job.suspended ? 'Resume' : 'Suspend';

  const perform = async () => {
    setState({ busy: true, wrong: '' });
    try {
      const at = [namespace, name].map(encodeURIComponent).join('/');
      await act(`/jobs/${at}/${verb}`);
      setState({ busy: false, wrong: '' });
    } catch (error) {
      setState({ busy: false, wrong: error instanceof Error ? error.message : String(error) });
    }
    setAsked(false);
  };
  return (
    <div className="facts">
      {asked ? (
        <>
          <span>
            {job.suspended
              ? `Resume ${name}? It waits for GPUs again.`
              : `Suspend ${name}? Its pods end, and ${gpuWords(job.row.held)} come free.`}
          </span>
          <button
            type="button"
            className="strong"
            disabled={state.busy}
            onClick={() => void perform()}
          >
            {title}
          </button>
          <button type="button" onClick={() => setAsked(false)}>
            Leave it
          </button>
        </>
      ) : (
        <button type="button" onClick={() => setAsked(true)}>
          {title} …
        </button>
      )}
      {state.wrong && (
        <span className="bad" role="alert">
          {state.wrong}
        </span>
      )}
    </div>
  );
}
