import { useView } from '../api/useView.ts';
import type { Ranked, Step, SweepView } from '../api/views.ts';
import { jobPath, sweepPath } from '../format/job.ts';
import { count, measured, parameter } from '../format/number.ts';
import { own } from '../format/own.ts';
import { BestCurve } from '../parts/BestCurve.tsx';
import { Card } from '../parts/Card.tsx';
import type { Column } from '../parts/column.ts';
import { Command } from '../parts/Copy.tsx';
import { Csv } from '../parts/Csv.tsx';
import { List } from '../parts/List.tsx';
import { Page } from '../parts/Page.tsx';
import { Parallel } from '../parts/Parallel.tsx';
import { State } from '../parts/State.tsx';
import { Moment } from '../parts/Time.tsx';
import { bestSoFar } from '../parts/trials.ts';
import { TrialStrip } from '../parts/TrialStrip.tsx';
import { Link } from '../router/Link.tsx';

const rankKey = (row: Ranked) => String(row.trial);
const errorKey = (row: Step) => `${row.at} ${row.words}`;

/** One search: how far it is, and the best that it found. */
export function SweepPage({ namespace, name }: { namespace: string; name: string }) {
  const { view, refusal } = useView<SweepView>(sweepPath({ namespace, kind: 'GPUJob', name }));
  return (
    <Page
      title={name}
      crumb={
        <>
          <Link to="/sweeps" className="q">
            Sweeps
          </Link>
          {' / '}
          {namespace}
        </>
      }
      lead={view?.lead ?? null}
      refusal={refusal}
      names={false}
    >
      {view && <Parts view={view} />}
    </Page>
  );
}

function Parts({ view }: { view: SweepView }) {
  const { row, top } = view;
  const columns = ranked(top, row.objective);
  return (
    <>
      <Card
        title="Trials"
        about={`of ${count(row.trials)} that it may have`}
        more={<Link to={jobPath(row.ref)}>the job</Link>}
      >
        <TrialStrip row={row} />
        {row.message && <p className="sub">{row.message}</p>}
      </Card>
      <Card
        title="The best so far"
        about={`${row.objective}, ${row.goal === 'minimize' ? 'the least' : 'the most'} first`}
        more={<Csv name={`${row.ref.name}-best`} columns={columns} rows={() => top} />}
      >
        {top.length > 0 ? (
          <List label="the best trials" columns={columns} rows={top} keyOf={rankKey} />
        ) : (
          <State words="No trial has succeeded yet." />
        )}
      </Card>
      {bestSoFar(top, row.goal).length > 1 && (
        <Card
          title={`${row.objective || 'The best'} so far`}
          about="by number of trial, from the first of these best on"
        >
          <BestCurve row={row} top={top} />
        </Card>
      )}
      {top.length > 1 && (
        <Card
          title="What they have in common"
          about="a line each of the best; the thick one is the first"
        >
          <Parallel top={top} objective={row.objective} />
        </Card>
      )}
      {view.errors.length > 0 && (
        <Card title="What failed last">
          <List label="what failed last" columns={ERRORS} rows={view.errors} keyOf={errorKey} />
        </Card>
      )}
      <Card title="By kubectl">
        <Command line={view.command} />
      </Card>
    </>
  );
}

function ranked(top: readonly Ranked[], objective: string): readonly Column<Ranked>[] {
  const names = [...new Set(top.flatMap((row) => Object.keys(row.parameters)))];
  return [
    {
      key: 'trial',
      head: 'trial',
      width: '64px',
      narrow: 'name',
      file: (row) => row.trial,
      cell: (row) => (
        <>
          <span className="only-narrow">trial </span>
          {row.trial}
        </>
      ),
    },
    {
      key: objective || 'value',
      head: objective || 'value',
      width: 'minmax(80px, .6fr)',
      end: true,
      narrow: 'number',
      file: (row) => row.value,
      cell: (row) => <b>{measured(row.value)}</b>,
    },
    {
      key: 'parameters',
      head: 'parameters',
      width: 'minmax(0, 3fr)',
      narrow: 'sentence',
      file: (row) => names.map((name) => `${name}=${own(row.parameters, name) ?? ''}`).join(' '),
      cell: (row) =>
        names.map((name) => (
          <span key={name} className="pill" title={own(row.parameters, name)}>
            {name} {parameter(own(row.parameters, name) ?? '–')}
          </span>
        )),
    },
  ];
}

const ERRORS: readonly Column<Step>[] = [
  {
    key: 'when',
    head: 'when',
    width: '128px',
    narrow: 'number',
    cell: (row) => <Moment at={row.at} seconds />,
  },
  {
    key: 'what',
    head: 'what',
    width: 'minmax(0, 1fr)',
    narrow: 'name',
    cell: (row) => (
      <>
        {row.words}
        {row.detail && <small>{row.detail}</small>}
      </>
    ),
  },
];
