import type uPlot from 'uplot';

import type { Colours } from './colours.ts';

const FONT = '11.5px ui-sans-serif, system-ui, sans-serif';

export interface Ticks {
  /** Seconds between two of them, and how one so long ago is called. */
  readonly step: number;
  readonly words: (ago: number) => string;
}

/** Ticks of a chart over the last while. */
export function ticksOf(seconds: number): Ticks {
  const [unit, size]: [string, number] =
    seconds > 3 * 86_400 ? ['d', 86_400] : seconds > 2 * 3_600 ? ['h', 3_600] : ['min', 60];
  const about = seconds / size / 6;
  const step = [1, 2, 3, 4, 5, 10, 15, 20, 30, 60].find((each) => each >= about) ?? 60;
  return { step: step * size, words: (ago) => `${Math.round(ago / size)}\u00a0${unit}` };
}

/** The axes that all charts here have: time since, ending in now, and a few lines across. */
export function axes(colours: Colours, span: number, say: (value: number) => string): uPlot.Axis[] {
  const ticks = ticksOf(span);
  const common = { stroke: colours.ink, font: FONT, ticks: { show: false } };
  return [
    {
      ...common,
      size: 26,
      gap: 6,
      grid: { show: false },
      splits: (self) => {
        const { min, max } = self.scales['x'] ?? {};
        if (min == null || max == null) return [];
        const fit = Math.max(1, Math.floor((self.width - 60) / 62));
        const step = ticks.step * Math.max(1, Math.ceil((max - min) / ticks.step / fit));
        const made: number[] = [];
        for (let at = max; at >= min - 1; at -= step) made.unshift(at);
        return made;
      },
      values: (self, splits) => {
        const end = self.scales['x']?.max ?? 0;
        return splits.map((at, index) => {
          if (at === end) return 'now';
          return index === 0 ? `${ticks.words(end - at)} ago` : ticks.words(end - at);
        });
      },
    },
    {
      ...common,
      size: 44,
      gap: 8,
      grid: { stroke: colours.line, width: 1 },
      splits: (self) => {
        const most = self.scales['y']?.max ?? 1;
        const step = roundStep(most / 5);
        const made: number[] = [];
        for (let at = 0; at <= most; at += step) made.push(at);
        return made;
      },
      values: (_self, splits) => splits.map(say),
    },
  ];
}

/** The round number next above. */
export function roundStep(about: number): number {
  const size = 10 ** Math.floor(Math.log10(about || 1));
  return size * ([1, 2, 2.5, 5, 10].find((each) => each * size >= about) ?? 10);
}

/** A dashed line across the whole width at `value`, with its name above its right end. */
export function dashed(
  self: uPlot,
  value: number,
  words: string,
  { colour, halo }: { colour: string; halo: string },
): void {
  const y = self.valToPos(value, 'y', true);
  const { left, width, top } = self.bbox;
  if (y < top - 1) return;
  const { ctx } = self;
  ctx.save();
  ctx.strokeStyle = colour;
  ctx.fillStyle = colour;
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([3 * devicePixelRatio, 4 * devicePixelRatio]);
  ctx.beginPath();
  ctx.moveTo(left, y);
  ctx.lineTo(left + width, y);
  ctx.stroke();
  ctx.font = `${11.5 * devicePixelRatio}px ui-sans-serif, system-ui, sans-serif`;
  ctx.textAlign = 'right';
  ctx.textBaseline = 'bottom';
  const wide = ctx.measureText(words).width + 8 * devicePixelRatio;
  ctx.fillStyle = halo; // it may stand on what is drawn
  ctx.globalAlpha = 0.85;
  ctx.fillRect(
    left + width - wide + 4 * devicePixelRatio,
    y - 18 * devicePixelRatio,
    wide,
    17 * devicePixelRatio,
  );
  ctx.globalAlpha = 1;
  ctx.fillStyle = colour;
  ctx.fillText(words, left + width, y - 3 * devicePixelRatio);
  ctx.restore();
}
