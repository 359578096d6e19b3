import { useMemo, useState } from 'react';
import type uPlot from 'uplot';

import type { JobView, RanksRow } from '../api/views.ts';
import { clock } from '../format/moment.ts';
import { measured, percent } from '../format/number.ts';
import { axes } from './axes.ts';
import { Card } from './Card.tsx';
import type { Colours } from './colours.ts';
import { Plot, type Options } from './Plot.tsx';

const say = (ratio: number) => measured(Math.round(ratio * 100));

/** The use of each pod of a gang over time, with the slowest told from the others. */
export function RanksCard({ job: { ranks, slowest } }: { job: JobView }) {
  if (!ranks || ranks.pods.every(({ busy }) => busy.every((each) => each === null))) return null;
  return (
    <Card
      title="GPU use of each pod"
      about={`% of its devices’ time, since this leader began${slowest ? `; the strong line: ${slowest.pod}, the slowest` : ''}`}
    >
      <Lines ranks={ranks} strong={slowest?.pod ?? ''} />
    </Card>
  );
}

function Lines({ ranks, strong }: { ranks: RanksRow; strong: string }) {
  const { start, stepSeconds, pods } = ranks;
  const [point, setPoint] = useState<number | null>(null);
  const many = pods[0]?.busy.length ?? 0;
  const times = useMemo(
    () => Array.from({ length: many }, (_, index) => start + index * stepSeconds),
    [many, start, stepSeconds],
  );
  const data = useMemo(
    () => [times, ...pods.map(({ busy }) => [...busy])] as uPlot.AlignedData,
    [times, pods],
  );
  const names = pods.map(({ pod }) => pod).join(' ');
  const span = many * stepSeconds;
  const make = useMemo(
    () =>
      (colours: Colours): Options => ({
        padding: [16, 14, 0, 0],
        cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
        scales: {
          x: {
            time: true,
            range: () => [start, start + Math.max(span - stepSeconds, stepSeconds)],
          },
          y: { range: () => [0, 1.06] },
        },
        axes: axes(colours, span, say),
        series: [
          {},
          ...names.split(' ').map((pod) => ({
            stroke: pod === strong ? colours.bad : colours.busy,
            width: pod === strong ? 2.2 : 1,
            points: { show: many < 2 },
          })),
        ],
      }),
    [start, span, stepSeconds, names, strong, many],
  );
  return (
    <div className="curve">
      <Plot
        make={make}
        data={data}
        height={160}
        onPoint={setPoint}
        label={`GPU use of ${pods.length} pods over time${strong && `; the slowest is ${strong}`}`}
      />
      <p className="readout" aria-hidden="true">
        {point !== null && `${clock(times[point] ?? start, start + span)}: ${told(ranks, point)}`}
      </p>
    </div>
  );
}

/** The least and the most at one moment, with their pods. */
function told({ pods }: RanksRow, point: number): string {
  const known = pods
    .flatMap(({ pod, busy }) => {
      const ratio = busy[point] ?? null;
      return ratio === null ? [] : [{ pod, ratio }];
    })
    .sort((a, b) => a.ratio - b.ratio);
  const least = known[0];
  const most = known.at(-1);
  if (!least || !most) return '–';
  return `${least.pod} ${percent(least.ratio)} to ${most.pod} ${percent(most.ratio)}`;
}
