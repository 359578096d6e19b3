import type { ReactNode } from 'react';

import type { DeviceRow, HealthRow } from '../api/views.ts';
import { celsius, counted, measured, memory } from '../format/number.ts';
import { Card } from './Card.tsx';
import { State } from './State.tsx';
import { Known } from './Unknown.tsx';

const NOT_TOLD = 'its driver does not tell, or others are on it whose work you may not see';

interface Props {
  device: DeviceRow;
  health: HealthRow | null;
}

/** How a GPU is, as its driver says. */
export function HealthCard({ device, health }: Props) {
  if (!health) {
    return (
      <Card title="Its health">
        <State words="No agent has told how it is." />
      </Card>
    );
  }
  const { xids } = health;
  return (
    <Card title="Its health" about="as its driver says">
      <dl className="pairs">
        <Fact name="temperature" value={device.celsius} say={celsius} />
        <Fact
          name="power"
          value={health.watts}
          say={(watts) => `${measured(Math.round(watts))} W`}
        />
        <Fact
          name="slowed down by"
          value={health.slowed}
          say={(reasons) => (reasons.length > 0 ? reasons.join(', ') : 'nothing')}
        />
        <Fact
          name="NVLink, both ways"
          value={health.nvlinkMibASecond}
          say={(mib) => `${memory(mib)} a second`}
        />
        <Fact
          name="XIDs since its agent started"
          value={xids}
          say={(all) =>
            all.length > 0
              ? all.map(({ code, times }) => `${code}, ${counted(times, 'time')}`).join('; ')
              : 'none'
          }
        />
        <Fact
          name="uncorrected errors of its memory"
          value={health.uncorrectedEcc}
          say={(errors) => `${measured(errors)} since the last reset`}
        />
        <dt>rows of memory replaced</dt>
        <dd>
          <Known value={health.remappedAfterCorrected} why={NOT_TOLD}>
            {(rows) => `${measured(rows)} after errors that were corrected`}
          </Known>
          {', '}
          <Known value={health.remappedAfterUncorrected} why={NOT_TOLD}>
            {(rows) => `${measured(rows)} after others`}
          </Known>
          {health.remapFailed && '; one could not be replaced'}
        </dd>
      </dl>
    </Card>
  );
}

function Fact<T>(of: { name: string; value: T | null; say: (value: T) => ReactNode }) {
  return (
    <>
      <dt>{of.name}</dt>
      <dd>
        <Known value={of.value} why={NOT_TOLD}>
          {of.say}
        </Known>
      </dd>
    </>
  );
}
