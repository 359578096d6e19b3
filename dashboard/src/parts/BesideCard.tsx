import type { BesideRow, WorkRef } from '../api/views.ts';
import { devicePath } from '../format/job.ts';
import { memory, percent } from '../format/number.ts';
import { Link } from '../router/Link.tsx';
import { Card } from './Card.tsx';
import { GpuBox } from './GpuBox.tsx';
import { ShareList } from './ShareList.tsx';

/** Who else is on a device of a job. */
export function BesideCard({ beside: { node, device }, own }: { beside: BesideRow; own: WorkRef }) {
  const use = device.busy === null ? 'use not known' : `used ${percent(device.busy)} of the time`;
  return (
    <Card
      title={`Beside it on GPU ${device.index} of ${node}`}
      about={`${memory(device.memoryMib)}, ${use}`}
      more={<Link to={devicePath(node, device.index)}>the GPU</Link>}
    >
      <GpuBox device={device} by="use" height={36} shut={false} />
      <div className="steps">
        <ShareList device={device} own={own} />
      </div>
    </Card>
  );
}
