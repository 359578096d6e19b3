import { useState } from 'react';

import { ask } from '../api/client.ts';
import { useAnswer } from '../api/useAnswer.ts';
import type { Gpus, WhatIf, WhatIfAnswer } from '../api/views.ts';
import { useQuery } from '../router/query.ts';
import { Card } from './Card.tsx';
import { Choice } from './Choice.tsx';
import { WhatIfAnswered } from './WhatIfAnswered.tsx';
import { JobFields, NodeFields, QuotaFields } from './WhatIfFields.tsx';

const KINDS = [
  ['nodes', 'nodes'],
  ['quota', 'a quota'],
  ['job', 'a job'],
] as const;
type Kind = (typeof KINDS)[number][0];

export interface Draft {
  readonly manifest: string;
  readonly likeNode: string;
  readonly nodes: string;
  readonly project: string;
  readonly quota: string;
}

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
  const nodes = useAnswer<Gpus>(kind === 'nodes' ? '/gpus' : '').answer?.nodes ?? [];
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

/** What is asked; null: there is something missing. */
export function questionOf(
  kind: Kind,
  draft: Draft,
  someNode: string,
  someProject: string,
): WhatIf | null {
  const none: WhatIf = { manifest: '', likeNode: '', nodes: 0, project: '', quota: null };
  const nodes = Number(draft.nodes);
  const quota = Number(draft.quota);
  switch (kind) {
    case 'job':
      return draft.manifest.trim() ? { ...none, manifest: draft.manifest } : null;
    case 'nodes': {
      const likeNode = draft.likeNode || someNode;
      return likeNode && Number.isInteger(nodes) && nodes > 0 ? { ...none, likeNode, nodes } : null;
    }
    case 'quota': {
      const project = draft.project || someProject;
      return project && draft.quota.trim() && quota >= 0 ? { ...none, project, quota } : null;
    }
  }
}
