import type { Used } from '../api/views.ts';
import { hours, memory, percent } from '../format/number.ts';
import { Card } from './Card.tsx';
import { Known, NO_USE } from './Unknown.tsx';

/** What a job did with its GPUs. */
export function UsedCard({ used }: { used: Used }) {
  return (
    <Card title="What it did with them" about="since it first held a GPU">
      <dl className="pairs">
        <dt>GPU-hours held</dt>
        <dd>{hours(used.gpuHours)}</dd>
        <dt>of these used</dt>
        <dd>
          <Known value={used.usedGpuHours} why={NO_USE}>
            {(many) => `${hours(many)}${part(many, used.gpuHours)}`}
          </Known>
        </dd>
        {/* Of what runs, idle time is told by the moment since when: nobody adds it up yet. */}
        {used.idleGpuHours !== null && (
          <>
            <dt>of these idle</dt>
            <dd>{`${hours(used.idleGpuHours)}${part(used.idleGpuHours, used.gpuHours)}`}</dd>
          </>
        )}
        <dt>use, of its devices’ time</dt>
        <dd>
          <Known value={used.mean} why={NO_USE}>
            {(mean) =>
              [
                `${percent(mean)} on average`,
                used.p50 !== null && `half of the time below ${percent(used.p50)}`,
                used.p95 !== null && `95 % of it below ${percent(used.p95)}`,
              ]
                .filter(Boolean)
                .join(', ')
            }
          </Known>
        </dd>
        <dt>most memory at once</dt>
        <dd>
          <Known value={used.peakMib} why={NO_USE}>
            {(peak) =>
              `${memory(peak)}${used.capMib === null ? '' : ` of its cap ${memory(used.capMib)}`}`
            }
          </Known>
        </dd>
      </dl>
    </Card>
  );
}

function part(many: number, all: number): string {
  return all > 0 ? `, ${percent(Math.min(1, many / all))} of what it held` : '';
}
