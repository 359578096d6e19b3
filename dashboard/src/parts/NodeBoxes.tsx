import { memo } from 'react';

import type { DeviceRow, NodeRow } from '../api/views.ts';
import { devicePath } from '../format/job.ts';
import { Link } from '../router/Link.tsx';
import type { ColourBy } from './box.ts';
import { figures, namesOn, spokenDevice } from './device.ts';
import { GpuBox } from './GpuBox.tsx';

interface Props {
  node: NodeRow;
  by: ColourBy;
  small: boolean;
  /** Which device of this node the Tab key comes to; -1: none. */
  entry: number;
}

function Figures({ device, by }: { device: DeviceRow; by: ColourBy }) {
  const [held, use] = figures(device, by);
  if (!use) return null;
  return (
    <span>
      {held && <span className="wide-only">{held}, </span>}
      {use}
    </span>
  );
}

/** The devices of a node, each a link to its page. Large ones have their figures and names below. */
export const NodeBoxes = memo(function NodeBoxes({ node, by, small, entry }: Props) {
  return (
    <div className="boxes">
      {node.devices.map((device, position) => (
        <Link
          key={device.index}
          to={devicePath(node.name, device.index)}
          tabIndex={position === entry ? 0 : -1}
          data-box={`${node.name} ${device.index}`}
        >
          <span className="vh">{spokenDevice(node, device)}</span>
          <GpuBox
            device={device}
            by={by}
            height={small ? 20 : 54}
            shut={device.problem !== '' || (node.closed !== '' && device.shares.length === 0)}
          />
          {!small && (
            <>
              <span className="under" aria-hidden="true">
                <span>{device.index}</span>
                <Figures device={device} by={by} />
              </span>
              <span className="names one-line" aria-hidden="true">
                {namesOn(device, node.closed !== '')}
              </span>
            </>
          )}
        </Link>
      ))}
    </div>
  );
});
