import type { Ranked } from '../api/views.ts';
import { type Axis, parallelAxes } from './parallel.ts';

const WIDTH = 1000;
const TOP = 46;
const HEIGHT = 150;

/** Parallel coordinates of the best trials: an axis each parameter, the objective last. */
export function Parallel({ top, objective }: { top: readonly Ranked[]; objective: string }) {
  const axes = parallelAxes(top, objective);
  const x = (index: number) => 70 + (index * (WIDTH - 140)) / Math.max(1, axes.length - 1);
  const line = (trial: number) =>
    axes
      .map((axis, index) => ({ x: x(index), at: axis.at[trial] ?? null }))
      .filter((point) => point.at !== null)
      .map(
        (point, index) =>
          `${index === 0 ? 'M' : 'L'}${point.x} ${TOP + (1 - (point.at ?? 0)) * HEIGHT}`,
      )
      .join('');
  return (
    <div className="scroll" tabIndex={0} role="region" aria-label="parameters of the best trials">
      <svg
        className="lines-svg"
        viewBox={`0 0 ${WIDTH} ${TOP + HEIGHT + 28}`}
        role="img"
        aria-label={`parallel coordinates of ${top.length} trials over ${axes.map((axis) => axis.name).join(', ')}`}
      >
        {axes.map((axis, index) => (
          <Ends key={axis.name} axis={axis} x={x(index)} />
        ))}
        {top
          .map((row, trial) => (
            <path key={row.trial} d={line(trial)} className={trial === 0 ? 'best' : ''} />
          ))
          .reverse()}
      </svg>
    </div>
  );
}

function Ends({ axis, x }: { axis: Axis; x: number }) {
  return (
    <>
      <line x1={x} x2={x} y1={TOP} y2={TOP + HEIGHT} />
      <text x={x} y={16} textAnchor="middle" className="strong">
        {axis.name}
      </text>
      <text x={x} y={TOP - 9} textAnchor="middle">
        {axis.high}
      </text>
      <text x={x} y={TOP + HEIGHT + 20} textAnchor="middle">
        {axis.low}
      </text>
    </>
  );
}
