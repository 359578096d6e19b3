import type { DeviceRow, NodeRow } from '../api/views.ts';
import { celsius, gpus, percent } from '../format/number.ts';
import { figures, modelWords, ofCap, shareName } from './device.ts';

export interface At {
  readonly node: NodeRow;
  readonly device: DeviceRow;
  readonly box: DOMRect;
}

const WIDTH = 320;
const GAP = 8;

/** What a box is about, beside it, while it is pointed at or the keyboard is on it. */
export function Pointed({ at: { node, device, box } }: { at: At }) {
  const left = Math.max(12, Math.min(box.left, innerWidth - WIDTH - 12));
  const below = box.bottom < innerHeight * 0.6;
  const place = below ? { top: box.bottom + GAP } : { bottom: innerHeight - box.top + GAP };
  const [held, use] = figures(device);
  return (
    <div className="point" aria-hidden="true" style={{ left, ...place }}>
      <b>
        GPU {device.index} of {node.name}
      </b>
      <div className="sub">
        {modelWords(device)} · {held ? `${held}, ${use} of the time` : 'nobody holds it'}
      </div>
      <div className="sub">
        {ofCap(device.memoryUsedMib, device.memoryMib)} of memory in use
        {device.celsius !== null && ` · ${celsius(device.celsius)}`}
        {node.agent === 'silent' && ' · its agent is silent'}
        {node.agent === 'none' && ' · no agent there'}
      </div>
      {(device.problem || node.closed) && (
        <div className="bad">{device.problem || node.closed}</div>
      )}
      <ul>
        {device.shares.map((share, index) => (
          <li key={index}>
            <span>
              {shareName(share)} <small>{share.project}</small>
            </span>
            <span>
              {gpus(share.gpus)}
              {', '}
              {share.idleSince !== null ? 'idle' : share.busy === null ? '–' : percent(share.busy)}
            </span>
          </li>
        ))}
        {device.free > 0 && (
          <li>
            <span className="sub">free</span>
            <span>{gpus(device.free)}</span>
          </li>
        )}
      </ul>
    </div>
  );
}
