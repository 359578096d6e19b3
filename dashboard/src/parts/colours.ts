/** The colours that charts draw with, as the scheme that is on has them. */
export interface Colours {
  readonly busy: string;
  readonly held: string;
  readonly line: string;
  readonly ink: string;
  readonly surface: string;
  readonly bad: string;
}

/** Read them off an element: a canvas does not know custom properties, nor `light-dark()`. */
export function coloursOf(element: HTMLElement): Colours {
  const probe = document.createElement('span');
  element.append(probe);
  const read = (name: string) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const colours = {
    busy: read('busy'),
    held: read('held-line'),
    line: read('line'),
    ink: read('ink3'),
    surface: read('surface'),
    bad: read('bad'),
  };
  probe.remove();
  return colours;
}

/** The same colour, paler. */
export function paler(colour: string, alpha: number): string {
  const parts = /^rgba?\(([^,]+),([^,]+),([^,)]+)/.exec(colour);
  return parts ? `rgba(${parts[1]},${parts[2]},${parts[3]},${alpha})` : colour;
}

/** Diagonal stripes of a colour, for a canvas: what is held and not used. */
export function stripes(canvas: CanvasRenderingContext2D, colour: string): CanvasPattern | string {
  const size = Math.round(8 * devicePixelRatio);
  const tile = document.createElement('canvas');
  tile.width = size;
  tile.height = size;
  const draw = tile.getContext('2d');
  if (!draw) return paler(colour, 0.4);
  draw.fillStyle = paler(colour, 0.22);
  draw.fillRect(0, 0, size, size);
  draw.strokeStyle = paler(colour, 0.8);
  draw.lineWidth = size * 0.26;
  for (const shift of [-size, 0, size]) {
    draw.moveTo(shift - 1, size + 1);
    draw.lineTo(shift + size + 1, -1);
  }
  draw.stroke();
  return canvas.createPattern(tile, 'repeat') ?? paler(colour, 0.4);
}
