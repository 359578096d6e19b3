import type { SweepRow, Ranked } from '../api/views.ts';
import { measured } from '../format/number.ts';
import { bestSoFar, TRIALS } from './trials.ts';

const WIDTH = 1000;
const LEFT = 90;
const TOP = 14;
const HEIGHT = 120;

/** The best value so far, by number of trial: a step down, or up, at each trial that was better. */
export function BestCurve({ row, top }: { row: SweepRow; top: readonly Ranked[] }) {
  const best = bestSoFar(top, row.goal);
  const first = best[0];
  const last = best.at(-1);
  if (!first || !last || best.length < 2) return null;
  const begun = TRIALS.filter(([name]) => name !== 'waiting').reduce(
    (sum, [name]) => sum + (row.counts[name] ?? 0),
    0,
  );
  const end = Math.max(begun - 1, last.trial, ...top.map((each) => each.trial));
  const x = (trial: number) => LEFT + (trial / Math.max(1, end)) * (WIDTH - LEFT - 30);
  const low = Math.min(first.value, last.value);
  const high = Math.max(first.value, last.value);
  const y = (value: number) => TOP + (1 - (value - low) / (high - low || 1)) * HEIGHT;
  const path = best
    .map(({ trial, value }, index) =>
      index === 0 ? `M${x(trial)} ${y(value)}` : `H${x(trial)}V${y(value)}`,
    )
    .join('');
  return (
    <div className="scroll" tabIndex={0} role="region" aria-label="the best so far by trial">
      <svg
        className="lines-svg"
        viewBox={`0 0 ${WIDTH} ${TOP + HEIGHT + 26}`}
        role="img"
        aria-label={`${row.objective} went from ${measured(first.value)} at trial ${first.trial} to ${measured(last.value)} at trial ${last.trial}`}
      >
        {[high, low].map((value) => (
          <g key={value}>
            <line x1={LEFT} x2={WIDTH - 30} y1={y(value)} y2={y(value)} />
            <text x={LEFT - 10} y={y(value) + 4} textAnchor="end">
              {measured(value)}
            </text>
          </g>
        ))}
        <path d={`${path}H${x(end)}`} className="best" />
        {best.map(({ trial, value }) => (
          <circle key={trial} cx={x(trial)} cy={y(value)} r="4">
            <title>{`trial ${trial}: ${measured(value)}`}</title>
          </circle>
        ))}
        <text x={LEFT} y={TOP + HEIGHT + 22}>
          trial 0
        </text>
        <text x={WIDTH - 30} y={TOP + HEIGHT + 22} textAnchor="end">
          trial {end}
        </text>
      </svg>
    </div>
  );
}
