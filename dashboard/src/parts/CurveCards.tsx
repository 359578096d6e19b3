import { useMemo } from 'react';

import type { JobView } from '../api/views.ts';
import { measured, memory } from '../format/number.ts';
import { Card } from './Card.tsx';
import { CurveChart } from './CurveChart.tsx';
import { State } from './State.tsx';

const MIB = 1024; // in a GiB
const plain = (value: number) => measured(Math.round(value * 10) / 10);
const hundredths = (ratio: number) => measured(Math.round(ratio * 100));

/** Use, memory and cores of a job over its life. */
export function CurveCards({ job, named = false }: { job: JobView; named?: boolean }) {
  const { curve, used } = job;
  const memoryMib = curve?.memoryMib;
  const memoryGib = useMemo(
    () => (memoryMib ?? []).map((value) => (value === null ? null : value / MIB)),
    [memoryMib],
  );
  const of = named ? ` of ${job.row.ref.name}` : '';
  if (!curve) {
    if (job.row.held === 0) return null;
    return (
      <Card title={`Use over time${of}`}>
        <State words="What it did with its GPUs so far is not known: no agent has told it." />
      </Card>
    );
  }
  const cap = used?.capMib ?? capOf(job);
  const common = { start: curve.start, stepSeconds: curve.stepSeconds };
  return (
    <div className="curves">
      <Card title={`GPU use${of}`} about="% of the device’s time, own processes">
        <CurveChart name="GPU use" values={curve.busy} {...common} say={hundredths} most={1} />
      </Card>
      <Card title={`GPU memory${of}`} about="GiB, own processes, against the cap">
        <CurveChart
          name="GPU memory"
          values={memoryGib}
          {...common}
          say={plain}
          cap={cap === null ? null : { at: cap / MIB, words: `cap ${memory(cap)}` }}
        />
      </Card>
      {curve.cpuCores.length > 0 && (
        <Card title={`CPU${of}`} about="cores, against the limit">
          <CurveChart
            name="CPU"
            values={curve.cpuCores}
            {...common}
            say={plain}
            colour="ink"
            cap={
              curve.cpuLimit === null
                ? null
                : { at: curve.cpuLimit, words: `limit ${plain(curve.cpuLimit)}` }
            }
          />
        </Card>
      )}
    </div>
  );
}

/** Of all its pods together; null: that of one of them is not known, or it has none. */
function capOf(job: JobView): number | null {
  const caps = job.placed.map((placed) => placed.capMib).filter((cap) => cap !== null);
  if (caps.length === 0 || caps.length < job.placed.length) return null;
  return caps.reduce((sum, cap) => sum + cap, 0);
}
