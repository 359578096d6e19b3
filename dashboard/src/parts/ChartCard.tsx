import { useAnswer } from '../api/useAnswer.ts';
import type { ChartView } from '../api/views.ts';
import { iso } from '../format/moment.ts';
import { useQuery } from '../router/query.ts';
import { Card } from './Card.tsx';
import { Choice } from './Choice.tsx';
import type { Column } from './column.ts';
import { Csv } from './Csv.tsx';
import { State } from './State.tsx';
import { UsageChart } from './UsageChart.tsx';

const SPANS = [
  ['1h', '1 h'],
  ['24h', '24 h'],
  ['7d', '7 days'],
] as const;
const WORDS: Readonly<Record<string, string>> = {
  '1h': 'the last hour',
  '24h': 'the last 24 hours',
  '7d': 'the last 7 days',
};

const ofQuota = (gpus: string) => `quota ${gpus}`;
const ofCluster = (gpus: string) => `${gpus} GPUs`;

type Moment = Record<'gpus' | 'held' | 'busy' | 'idle' | 'waiting' | 'borrowed', number | null> & {
  at: number;
};
const FILE: readonly Column<Moment>[] = [
  { key: 'time', head: '', width: '', cell: () => null, file: (row) => iso(row.at) },
  ...(['gpus', 'held', 'busy', 'idle', 'waiting', 'borrowed'] as const).map((key) => ({
    key,
    head: '',
    width: '',
    cell: () => null,
    file: (row: Moment) => row[key],
  })),
];

/** The chart of the cluster, or of one project, over a span that the address has. */
export function ChartCard({ project = '' }: { project?: string }) {
  const [query, set] = useQuery();
  const asked = query.get('span') ?? '';
  const span = Object.hasOwn(WORDS, asked) ? asked : '24h';
  const of = project ? `&project=${encodeURIComponent(project)}` : '';
  const { answer, refusal } = useAnswer<ChartView>(
    `/chart?span=${span}${of}`,
    span === '1h' ? 10 : 60,
  );
  return (
    <Card
      title="Allocated against busy"
      about={`GPUs, ${WORDS[span] ?? ''}; hatched is held and not used`}
      more={
        <>
          <Choice
            label=""
            value={span}
            choices={SPANS}
            onChoose={(next) => set({ span: next === '24h' ? null : next })}
          />
          {answer && <Csv name={`gpus-${span}`} columns={FILE} rows={() => moments(answer)} />}
        </>
      }
    >
      {answer && <UsageChart chart={answer} capacity={project ? ofQuota : ofCluster} />}
      {!answer && refusal && <State words={refusal.message} />}
      {!answer && !refusal && <div style={{ height: 270 }} />}
    </Card>
  );
}

function moments(chart: ChartView): Moment[] {
  return chart.held.map((held, index) => ({
    at: chart.start + index * chart.stepSeconds,
    held,
    gpus: chart.gpus[index] ?? null,
    busy: chart.busy[index] ?? null,
    idle: chart.idle[index] ?? null,
    waiting: chart.waiting[index] ?? null,
    borrowed: chart.borrowed[index] ?? null,
  }));
}
