import { useMemo } from 'react';

import { useView } from '../api/useView.ts';
import type { GpusView } from '../api/views.ts';
import { duration } from '../format/duration.ts';
import { celsius, counted } from '../format/number.ts';
import { Boxes } from '../parts/Boxes.tsx';
import { type ColourBy, FULL_CELSIUS } from '../parts/box.ts';
import { Card } from '../parts/Card.tsx';
import { Choice } from '../parts/Choice.tsx';
import { grouped, groupings, MANY, matching, type Only, usual } from '../parts/groups.ts';
import { NoGpus, NotFollowed } from '../parts/Missing.tsx';
import { Page } from '../parts/Page.tsx';
import { Search } from '../parts/Search.tsx';
import { State } from '../parts/State.tsx';
import { useQuery } from '../router/query.ts';

const ONLY = [
  ['all', 'all'],
  ['idle', 'held idle'],
  ['free', 'with room'],
  ['closed', 'closed'],
] as const;

const COLOURS: readonly (readonly [ColourBy, string])[] = [
  ['use', 'use'],
  ['memory', 'memory'],
  ['heat', 'heat'],
];

const FULL: Readonly<Record<ColourBy, string>> = {
  use: 'busy: width is the share, height its use',
  memory: 'memory in use, of what the share may hold',
  heat: `how hot it is: full at ${celsius(FULL_CELSIUS)}`,
};

/** A box for each GPU. */
export function GpusPage() {
  const { view, refusal } = useView<GpusView>('/gpus');
  return (
    <Page title="GPUs" lead={view?.lead ?? null} refusal={refusal}>
      {view && (view.nodes.length === 0 ? <NoGpus /> : <All view={view} />)}
    </Page>
  );
}

function All({ view }: { view: GpusView }) {
  const [query, set] = useQuery();
  const words = query.get('q') ?? query.get('node') ?? '';
  const only = (ONLY.find(([each]) => each === query.get('only'))?.[0] ?? 'all') satisfies Only;
  const by = COLOURS.find(([each]) => each === query.get('colour'))?.[0] ?? 'use';
  const choices = useMemo(() => groupings(view.nodes), [view.nodes]);
  const normal = usual(view.nodes);
  const asked = query.get('group') ?? normal;
  const group = choices.includes(asked) ? asked : normal;
  const nodes = useMemo(() => matching(view.nodes, words, only), [view.nodes, words, only]);
  const groups = useMemo(() => grouped(nodes, group), [nodes, group]);
  const small = group !== 'node' || nodes.length > MANY;
  return (
    <>
      {!view.followed && <NotFollowed />}
      <div className="tools">
        <Key idleSeconds={view.idleSeconds} by={by} />
        <div>
          <Choice
            label="group by"
            value={group}
            choices={choices.map((each) => [each, each] as const)}
            onChoose={(next) => set({ group: next === normal ? null : next })}
          />
          <Choice
            label="colour by"
            value={by}
            choices={COLOURS}
            onChoose={(next) => set({ colour: next === 'use' ? null : next })}
          />
        </div>
      </div>
      <div className="filters" role="search">
        <Search
          label="node, model, job or project"
          value={words}
          onSearch={(q) => set({ q, node: null })}
        />
        <Choice
          label="show"
          value={only}
          choices={ONLY}
          onChoose={(next) => set({ only: next === 'all' ? null : next })}
        />
      </div>
      <p className="vh" role="status">
        {counted(nodes.length, 'node')} shown
      </p>
      {nodes.length === 0 ? (
        <Card title="None">
          <State
            words="No node is like that."
            help={
              <button type="button" onClick={() => set({ q: null, node: null, only: null })}>
                Show all
              </button>
            }
          />
        </Card>
      ) : (
        <Boxes groups={groups} by={by} small={small} />
      )}
    </>
  );
}

function Key({ idleSeconds, by }: { idleSeconds: number; by: ColourBy }) {
  return (
    <ul className="key">
      <li>
        <i data-state="busy" />
        {FULL[by]}
      </li>
      {by !== 'heat' && (
        <li>
          <i data-state="held" />
          held
        </li>
      )}
      {by === 'use' && (
        <li>
          <i data-state="idle" />
          held idle over {duration(idleSeconds)}
        </li>
      )}
      <li>
        <i data-state="unknown" />
        not known
      </li>
      {by !== 'heat' && (
        <li>
          <i data-state="free" />
          free
        </li>
      )}
    </ul>
  );
}
