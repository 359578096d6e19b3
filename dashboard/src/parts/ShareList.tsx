import type { DeviceRow, WorkRef, ShareRow } from '../api/views.ts';
import { sameRef } from '../format/job.ts';
import { gpus, memory, percent } from '../format/number.ts';
import type { Column } from './column.ts';
import { ofCap } from './device.ts';
import { JobLink } from './JobLink.tsx';
import { List } from './List.tsx';
import { Age } from './Time.tsx';
import { Known, NO_USE } from './Unknown.tsx';

type Entry = { kind: 'share'; share: ShareRow; own: boolean } | { kind: 'free'; device: DeviceRow };

const keyOf = (entry: Entry) =>
  entry.kind === 'free' ? 'free' : `${entry.share.pod} ${entry.share.ref?.name ?? ''}`;

const COLUMNS: readonly Column<Entry>[] = [
  {
    key: 'job',
    head: 'job',
    width: 'minmax(0, 1.4fr)',
    narrow: 'name',
    cell: (entry) =>
      entry.kind === 'free' ? <span className="sub">free</span> : <Name entry={entry} />,
  },
  {
    key: 'project',
    head: 'project',
    width: 'minmax(0, 1fr)',
    narrow: 'sentence',
    cell: (entry) => entry.kind === 'share' && entry.share.project,
  },
  {
    key: 'share',
    head: 'share',
    width: '52px',
    end: true,
    narrow: 'number',
    about: 'of the GPU',
    cell: (entry) => gpus(entry.kind === 'free' ? entry.device.free : entry.share.gpus),
  },
  {
    key: 'memory',
    head: 'memory',
    width: '118px',
    end: true,
    narrow: 'more',
    about: 'held, of what it may hold',
    cell: (entry) =>
      entry.kind === 'free' ? (
        entry.device.memoryUsedMib !== null &&
        memory(Math.max(0, entry.device.free * entry.device.memoryMib))
      ) : (
        <Known value={entry.share.memoryMib} why={NO_USE}>
          {(held) => ofCap(held, entry.share.capMib)}
        </Known>
      ),
  },
  {
    key: 'use',
    head: 'use',
    width: '64px',
    end: true,
    about: 'of the device’s time, with a kernel of its own',
    cell: (entry) =>
      entry.kind === 'share' && (
        <Known value={entry.share.busy} why={NO_USE}>
          {percent}
        </Known>
      ),
  },
  {
    key: 'idle',
    head: 'idle',
    width: '88px',
    end: true,
    cell: (entry) =>
      entry.kind === 'share' &&
      entry.share.idleSince !== null && <Age at={entry.share.idleSince} />,
  },
];

function Name({ entry }: { entry: Extract<Entry, { kind: 'share' }> }) {
  const { share, own } = entry;
  if (!share.ref) return <span className="sub">work that you may not see</span>;
  return own ? <b>{share.ref.name}</b> : <JobLink of={share.ref} />;
}

/** Who is on a device; `own` is told from the others. */
export function ShareList({ device, own = null }: { device: DeviceRow; own?: WorkRef | null }) {
  const entries: Entry[] = device.shares.map((share) => ({
    kind: 'share',
    share,
    own: sameRef(share.ref, own),
  }));
  if (device.free > 0) entries.push({ kind: 'free', device });
  return (
    <List label={`who is on GPU ${device.index}`} columns={COLUMNS} rows={entries} keyOf={keyOf} />
  );
}
