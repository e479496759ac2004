/** A small curve without axes; what it shows is said in words beside it. */

import * as React from 'react';

const WIDTH = 60;
const HEIGHT = 14;

export function Sparkline({ values }: { values: (number | null)[] }): React.JSX.Element | null {
  const numbers = values.filter((value) => value !== null);
  if (numbers.length < 2) return null;
  const low = Math.min(...numbers);
  const span = Math.max(...numbers) - low || 1;
  const points = values.map((value, i) => {
    if (value === null) return '';
    const x = (i / (values.length - 1)) * WIDTH;
    return `${x},${HEIGHT + 1 - ((value - low) / span) * HEIGHT}`;
  });
  const lines = points.join(' ').split(/ {2,}/); // a gap ends a line
  return (
    <svg className="jp-Autotrain-sparkline" viewBox="0 0 60 16" aria-hidden="true">
      {lines.map((line, i) => (
        <polyline key={i} points={line} />
      ))}
    </svg>
  );
}
