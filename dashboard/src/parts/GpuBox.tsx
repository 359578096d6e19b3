import { memo } from 'react';

import type { DeviceRow } from '../api/views.ts';
import { type ColourBy, drawn } from './box.ts';

interface Props {
  device: DeviceRow;
  by: ColourBy;
  height: number;
  shut: boolean;
}

const percent = (part: number) => `${part * 100}%`;

/** A GPU: as wide as its parts, each filled as high as it is used; hatched is idle. */
export const GpuBox = memo(function GpuBox({ device, by, height, shut }: Props) {
  const radius = height > 30 ? 4 : 2;
  return (
    <svg className="box-svg" height={height} aria-hidden="true">
      <rect className={shut ? 'shut' : 'free'} width="100%" height={height} rx={radius} />
      {drawn(device, by).map(({ x, width, kind, fill }, index) => {
        const place = {
          x: percent(x),
          rx: radius,
          style: { width: `calc(${percent(width)} - 1.5px)` },
        };
        if (kind === 'idle') {
          return (
            <g key={index}>
              <rect className="idle-back" {...place} height={height} />
              <rect className="idle" {...place} height={height} />
            </g>
          );
        }
        if (kind === 'unknown') {
          return <rect key={index} className="unknown" {...place} height={height} />;
        }
        const high = fill * height;
        return (
          <g key={index}>
            <rect className="part" {...place} height={height} />
            {high >= 0.5 && (
              <rect
                className="fill"
                {...place}
                rx={Math.min(2, radius)}
                y={height - high}
                height={high}
              />
            )}
          </g>
        );
      })}
      {device.problem && (
        <rect
          className="broken"
          x="1"
          y="1"
          style={{ width: 'calc(100% - 2px)' }}
          height={height - 2}
          rx={radius}
        />
      )}
    </svg>
  );
});
