import { useState } from 'react';

import { ask } from '../api/client.ts';
import { useAnswer } from '../api/useAnswer.ts';
import type { GpusView, WhatIfAnswer } from '../api/views.ts';
import { useQuery } from '../router/query.ts';
import { Card } from './Card.tsx';
import { Choice } from './Choice.tsx';
import { type Draft, type Kind, KINDS, questionOf } from './question.ts';
import { WhatIfAnswered } from './WhatIfAnswered.tsx';
import { JobFields, NodeFields, QuotaFields } from './WhatIfFields.tsx';

const BLANK: Draft = { manifest: '', likeNode: '', nodes: '1', project: '', quota: '' };

/** The planner on a copy of this second: of a job, of more nodes, or of another quota. */
export function WhatIfCard({ projects }: { projects: readonly string[] }) {
  const [query, set] = useQuery();
  const kind: Kind = KINDS.find(([each]) => each === query.get('whatif'))?.[0] ?? 'nodes';
  const [draft, setDraft] = useState(BLANK);
  const [state, setState] = useState<{ busy: boolean; answer: WhatIfAnswer | null; wrong: string }>(
    {
      busy: false,
      answer: null,
      wrong: '',
    },
  );
  const nodes = useAnswer<GpusView>(kind === 'nodes' ? '/gpus' : '').answer?.nodes ?? [];
  const question = questionOf(kind, draft, nodes[0]?.name ?? '', projects[0] ?? '');

  const put = async () => {
    if (!question) return;
    setState({ busy: true, answer: null, wrong: '' });
    try {
      const answer = await ask<WhatIfAnswer>('/what-if', { method: 'POST', body: question });
      setState({ busy: false, answer, wrong: '' });
    } catch (error) {
      const wrong = error instanceof Error ? error.message : String(error);
      setState({ busy: false, answer: null, wrong });
    }
  };

  const fields = { draft, change: (part: Partial<Draft>) => setDraft({ ...draft, ...part }) };
  return (
    <Card title="What if" about="the planner on a copy of this second; nothing is changed">
      <div className="sides">
        <form
          onSubmit={(event) => {
            event.preventDefault();
            void put();
          }}
        >
          <Choice
            label="there were"
            value={kind}
            choices={KINDS}
            onChoose={(whatif) => set({ whatif })}
          />
          <div className="fields">
            {kind === 'job' && <JobFields {...fields} />}
            {kind === 'nodes' && <NodeFields {...fields} nodes={nodes} />}
            {kind === 'quota' && <QuotaFields {...fields} projects={projects} />}
          </div>
          <button type="submit" className="strong" disabled={!question || state.busy}>
            {state.busy ? 'Planning …' : 'Plan'}
          </button>
        </form>
        <div role="status">
          {state.wrong && <p className="bad">{state.wrong}</p>}
          {state.answer && <WhatIfAnswered answer={state.answer} />}
        </div>
      </div>
    </Card>
  );
}
