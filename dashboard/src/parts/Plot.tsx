import { useEffect, useRef } from 'react';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';

import { type Colours, coloursOf } from './colours.ts';

export type Options = Omit<uPlot.Options, 'width' | 'height'>;

interface Props {
  /** How it looks; another function makes another plot. */
  make: (colours: Colours) => Options;
  data: uPlot.AlignedData;
  height: number;
  /** What it shows, in a sentence. */
  label: string;
  /** Which point is pointed at; null: none. */
  onPoint?: (index: number | null) => void;
}

/** A plot as wide as its place, drawn anew when that or the scheme of colours changes. */
export function Plot({ make, data, height, label, onPoint }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const latest = useRef({ data, onPoint });

  useEffect(() => {
    latest.current = { data, onPoint };
    plot.current?.setData(data);
  }, [data, onPoint]);

  useEffect(() => {
    const element = place.current;
    if (!element) return;
    const build = () => {
      plot.current?.destroy();
      const options = make(coloursOf(element));
      const setCursor = (self: uPlot) => latest.current.onPoint?.(self.cursor.idx ?? null);
      plot.current = new uPlot(
        {
          legend: { show: false },
          ...options,
          width: Math.max(1, element.clientWidth),
          height,
          hooks: { ...options.hooks, setCursor: [setCursor] },
        },
        latest.current.data,
        element,
      );
    };
    build();
    const resized = new ResizeObserver(() => {
      const width = element.clientWidth;
      if (width > 0 && plot.current?.width !== width) plot.current?.setSize({ width, height });
    });
    resized.observe(element);
    const dark = matchMedia('(prefers-color-scheme: dark)');
    dark.addEventListener('change', build);
    return () => {
      dark.removeEventListener('change', build);
      resized.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [make, height]);

  return <div className="plot" ref={place} role="img" aria-label={label} style={{ height }} />;
}
