/** The patterns that boxes are filled with, once for the page. */
export function Patterns() {
  const turned = { width: 6, height: 6, patternUnits: 'userSpaceOnUse' };
  return (
    <svg width="0" height="0" aria-hidden="true" style={{ position: 'absolute' }}>
      <defs>
        <pattern id="hatch" {...turned} patternTransform="rotate(45)">
          <rect width="2.6" height="6" />
        </pattern>
        <pattern id="unknown" {...turned}>
          <rect width="2" height="6" />
        </pattern>
      </defs>
    </svg>
  );
}
