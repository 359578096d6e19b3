export interface Place {
  readonly x: number;
  readonly y: number;
}

const DIRECTIONS: Readonly<Record<string, readonly [number, number]>> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

/** Which place an arrow key leads to from another: the nearest that way, straight ahead preferred. */
export function nearest(key: string, from: Place, places: readonly Place[]): number {
  const direction = DIRECTIONS[key];
  if (!direction) return -1;
  const [dx, dy] = direction;
  let best = -1;
  let least = Infinity;
  places.forEach((place, index) => {
    const ahead = (place.x - from.x) * dx + (place.y - from.y) * dy;
    const aside = Math.abs((place.x - from.x) * dy) + Math.abs((place.y - from.y) * dx);
    if (ahead <= 1) return;
    const cost = ahead + 4 * aside;
    if (cost < least) {
      best = index;
      least = cost;
    }
  });
  return best;
}
