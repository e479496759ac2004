/** A small curve without axes; what it shows is said in words beside it. */

import * as React from 'react';

const WIDTH = 60;
const HEIGHT = 14;

export function Sparkline({ values }: { values: number[] }): React.JSX.Element | null {
  if (values.length < 2) return null;
  const low = Math.min(...values);
  const span = Math.max(...values) - low || 1;
  const points = values.map((value, i) => {
    const x = (i / (values.length - 1)) * WIDTH;
    return `${x},${HEIGHT + 1 - ((value - low) / span) * HEIGHT}`;
  });
  return (
    <svg className="jp-Autotrain-sparkline" viewBox="0 0 60 16" aria-hidden="true">
      <polyline points={points.join(' ')} />
    </svg>
  );
}
