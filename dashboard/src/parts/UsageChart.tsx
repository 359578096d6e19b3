import { useMemo, useState } from 'react';
import type uPlot from 'uplot';

import type { ChartView } from '../api/views.ts';
import { duration } from '../format/duration.ts';
import { clock } from '../format/moment.ts';
import { gpus } from '../format/number.ts';
import { axes, dashed } from './axes.ts';
import { type Colours, paler, stripes } from './colours.ts';
import { Plot, type Options } from './Plot.tsx';
import { last } from './series.ts';

interface Props {
  chart: ChartView;
  /** What the dashed line is called: all GPUs, or the quota. */
  capacity: (gpus: string) => string;
}

/** Allocated against busy: the gap between them is hatched, what there is in all is a dashed line. */
export function UsageChart({ chart, capacity }: Props) {
  const [point, setPoint] = useState<number | null>(null);
  const { start, stepSeconds, at } = chart;
  const times = useMemo(
    () => chart.held.map((_, index) => start + index * stepSeconds),
    [chart.held, start, stepSeconds],
  );
  const data = useMemo(
    () => [times, [...chart.held], [...chart.busy]] as uPlot.AlignedData,
    [times, chart.held, chart.busy],
  );
  const known = chart.held.some((value) => value !== null);
  const all = last(chart.gpus);
  const most = Math.max(0, all ?? 0, ...chart.held.map((value) => value ?? 0));
  const span = chart.held.length * stepSeconds;
  const end = start + span - stepSeconds;
  const make = useMemo(
    () => (colours: Colours) => options(colours, { span, end, most, all, capacity }),
    [span, end, most, all, capacity],
  );
  const words = (index: number) =>
    [
      ['held', chart.held],
      ['busy', chart.busy],
      ['idle', chart.idle],
      ['waiting', chart.waiting],
    ]
      .map(([name, values]) => `${say(values?.[index] as number | null)} ${name as string}`)
      .join(', ');
  return (
    <>
      <Plot
        make={make}
        data={data}
        height={230}
        onPoint={setPoint}
        label={`GPUs over the last ${duration(span)}; at its end ${words(chart.held.length - 1)}`}
      />
      <div className="beneath">
        <p className="readout" aria-hidden="true">
          {point === null
            ? known
              ? chart.note
              : `Nothing is known of it yet: there is a point every ${duration(stepSeconds)}.`
            : `${clock(times[point] ?? at, at)}: ${words(point)} of ${say(chart.gpus[point] ?? null)}`}
        </p>
        {chart.note && <p className="vh">{chart.note}</p>}
        <Numbers chart={chart} times={times} />
      </div>
    </>
  );
}

const say = (value: number | null | undefined) => (value == null ? '–' : gpus(value));

interface Shape {
  readonly span: number;
  readonly end: number;
  readonly most: number;
  readonly all: number | null;
  readonly capacity: Props['capacity'];
}

function options(colours: Colours, { span, end, most, all, capacity }: Shape): Options {
  return {
    padding: [18, 14, 0, 0],
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 6 } },
    scales: {
      x: { time: true, range: () => [end - span, end] },
      y: { range: () => [0, most * 1.04 || 1] },
    },
    axes: axes(colours, span, (value) => gpus(value)),
    series: [
      {},
      { stroke: colours.held, width: 1.6, points: { show: false } },
      { stroke: colours.busy, width: 1, fill: paler(colours.busy, 0.88), points: { show: false } },
    ],
    bands: [{ series: [1, 2], fill: (self) => stripes(self.ctx, colours.held) }],
    hooks: {
      draw: [
        (self) => {
          if (all !== null) {
            dashed(self, all, capacity(gpus(all)), { colour: colours.ink, halo: colours.surface });
          }
        },
      ],
    },
  };
}

const ROWS = 12;

/** The same as numbers, for who sees no picture: some dozen rows of it. */
function Numbers({ chart, times }: { chart: ChartView; times: readonly number[] }) {
  const step = Math.max(1, Math.ceil(times.length / ROWS));
  const shown = times
    .map((time, index) => ({ time, index }))
    .filter(({ index }) => index % step === 0);
  return (
    <details className="numbers">
      <summary>as numbers</summary>
      <table>
        <thead>
          <tr>
            <th scope="col">time</th>
            <th scope="col">in all</th>
            <th scope="col">held</th>
            <th scope="col">busy</th>
            <th scope="col">idle</th>
            <th scope="col">waiting</th>
          </tr>
        </thead>
        <tbody>
          {shown.map(({ time, index }) => (
            <tr key={time}>
              <td>{clock(time, chart.at)}</td>
              {[chart.gpus, chart.held, chart.busy, chart.idle, chart.waiting].map(
                (values, column) => (
                  <td key={column}>{say(values[index])}</td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  );
}
