import { useCallback, useMemo } from 'react';

import type { JobView, RanksRow } from '../api/views.ts';
import { measured, percent } from '../format/number.ts';
import { Card } from './Card.tsx';
import type { Colours } from './colours.ts';
import { LinesOverTime } from './LinesOverTime.tsx';
import type { Options } from './Plot.tsx';

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
  const lines = useMemo(() => pods.map(({ busy }) => busy), [pods]);
  const names = pods.map(({ pod }) => pod).join(' ');
  const single = (lines[0]?.length ?? 0) < 2;
  const look = useCallback(
    (colours: Colours): Pick<Options, 'series'> => ({
      series: [
        {},
        ...names.split(' ').map((pod) => ({
          stroke: pod === strong ? colours.bad : colours.busy,
          width: pod === strong ? 2.2 : 1,
          points: { show: single },
        })),
      ],
    }),
    [names, strong, single],
  );
  return (
    <LinesOverTime
      start={start}
      stepSeconds={stepSeconds}
      lines={lines}
      top={1.06}
      say={say}
      look={look}
      label={`GPU use of ${pods.length} pods over time${strong && `; the slowest is ${strong}`}`}
      told={(point) => told(ranks, point)}
    />
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
