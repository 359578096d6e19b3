import { useCallback, useMemo } from 'react';

import { duration } from '../format/duration.ts';
import { dashed } from './axes.ts';
import { type Colours, paler } from './colours.ts';
import { LinesOverTime } from './LinesOverTime.tsx';
import type { Options } from './Plot.tsx';
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
  const capAt = cap?.at ?? null;
  const capWords = cap?.words ?? '';
  const look = useCallback(
    (colours: Colours): Pick<Options, 'series' | 'hooks'> => ({
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
    [capAt, capWords, colour],
  );
  const lines = useMemo(() => [values], [values]);
  const words = (value: number | null | undefined, unknown: string) =>
    value === null || value === undefined ? unknown : say(value);
  return (
    <LinesOverTime
      start={start}
      stepSeconds={stepSeconds}
      lines={lines}
      top={Math.max(most, largest(values), cap?.at ?? 0) * 1.06 || 1}
      say={say}
      look={look}
      label={`${name} over ${duration(values.length * stepSeconds)}; the last that is known: ${words(last(values), 'not known')}`}
      told={(point) => words(values[point], '–')}
    />
  );
}
