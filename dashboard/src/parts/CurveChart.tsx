import { useMemo, useState } from 'react';
import type uPlot from 'uplot';

import { duration } from '../format/duration.ts';
import { clock } from '../format/moment.ts';
import { axes, dashed } from './axes.ts';
import { type Colours, paler } from './colours.ts';
import { Plot, type Options } from './Plot.tsx';
import { largest, last } from './series.ts';

interface Props {
  name: string;
  values: readonly (number | null)[];
  start: number;
  stepSeconds: number;
  say: (value: number) => string;
  /** At least as high as this. */
  most?: number;
  cap?: { at: number; words: string } | null;
  /** The colour of GPUs at work, or none. */
  colour?: 'busy' | 'ink';
}

/** One quantity over a life, against its cap. */
export function CurveChart(props: Props) {
  const { name, values, start, stepSeconds, say, most = 0, cap = null, colour = 'busy' } = props;
  const [point, setPoint] = useState<number | null>(null);
  const times = useMemo(
    () => values.map((_, index) => start + index * stepSeconds),
    [values, start, stepSeconds],
  );
  const data = useMemo(() => [times, [...values]] as uPlot.AlignedData, [times, values]);
  const span = values.length * stepSeconds;
  const end = start + span - stepSeconds;
  const top = Math.max(most, largest(values), cap?.at ?? 0) * 1.06 || 1;
  const capAt = cap?.at ?? null;
  const capWords = cap?.words ?? '';
  const make = useMemo(
    () =>
      (colours: Colours): Options => ({
        padding: [16, 14, 0, 0],
        cursor: { y: false, drag: { x: false, y: false }, points: { size: 6 } },
        scales: {
          x: { time: true, range: () => [end - Math.max(span - stepSeconds, stepSeconds), end] },
          y: { range: () => [0, top] },
        },
        axes: axes(colours, span, say),
        series: [
          {},
          {
            stroke: colours[colour],
            width: 1.6,
            fill: paler(colours[colour], 0.16),
            points: { show: false },
          },
        ],
        hooks: {
          draw: [
            (self) =>
              capAt !== null &&
              dashed(self, capAt, capWords, { colour: colours.bad, halo: colours.surface }),
          ],
        },
      }),
    [span, stepSeconds, end, top, say, capAt, capWords, colour],
  );
  const now = last(values);
  const words = now === null ? 'not known' : say(now);
  const pointed = point === null ? null : (values[point] ?? null);
  return (
    <div className="curve">
      <Plot
        make={make}
        data={data}
        height={160}
        onPoint={setPoint}
        label={`${name} over ${duration(span)}; the last that is known: ${words}`}
      />
      <p className="readout" aria-hidden="true">
        {point !== null &&
          `${clock(times[point] ?? start, start + span)}: ${pointed === null ? '–' : say(pointed)}`}
      </p>
    </div>
  );
}
