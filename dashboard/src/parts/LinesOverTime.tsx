import { useMemo, useState } from 'react';
import type uPlot from 'uplot';

import { clock } from '../format/moment.ts';
import { axes } from './axes.ts';
import type { Colours } from './colours.ts';
import { Plot, type Options } from './Plot.tsx';

interface Props {
  /** Of the first point, and from one to the next. */
  start: number;
  stepSeconds: number;
  lines: readonly (readonly (number | null)[])[];
  /** Of the axis; it begins at 0. */
  top: number;
  say: (value: number) => string;
  /** How the lines look, and what is drawn over them. */
  look: (colours: Colours) => Pick<Options, 'series' | 'hooks'>;
  label: string;
  /** What stands below while somebody points at this one. */
  told: (point: number) => string;
}

/** Lines over a life. */
export function LinesOverTime(props: Props) {
  const { start, stepSeconds, lines, top, say, look, label, told } = props;
  const [point, setPoint] = useState<number | null>(null);
  const many = lines[0]?.length ?? 0;
  const several = lines.length > 1;
  const times = useMemo(
    () => Array.from({ length: many }, (_, index) => start + index * stepSeconds),
    [many, start, stepSeconds],
  );
  const data = useMemo(
    () => [times, ...lines.map((line) => [...line])] as uPlot.AlignedData,
    [times, lines],
  );
  const span = many * stepSeconds;
  const end = start + span - stepSeconds;
  const make = useMemo(
    () =>
      (colours: Colours): Options => ({
        padding: [16, 14, 0, 0],
        cursor: {
          y: false,
          drag: { x: false, y: false },
          points: several ? { show: false } : { size: 6 },
        },
        scales: {
          x: { time: true, range: () => [end - Math.max(span - stepSeconds, stepSeconds), end] },
          y: { range: () => [0, top] },
        },
        axes: axes(colours, span, say),
        ...look(colours),
      }),
    [span, stepSeconds, end, top, say, look, several],
  );
  return (
    <div className="curve">
      <Plot make={make} data={data} height={160} onPoint={setPoint} label={label} />
      <p className="readout" aria-hidden="true">
        {point !== null && `${clock(times[point] ?? start, start + span)}: ${told(point)}`}
      </p>
    </div>
  );
}
