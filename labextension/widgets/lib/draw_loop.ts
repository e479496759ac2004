/** Draws the parts of a view where their session has changed. */

import type { Session } from './session';

/** Something that draws what a session holds; cheap where nothing has changed. */
export interface Part {
  update(): void;
}

/** Drawing takes at most one part in this many of the page's time, however many curves there are. */
const SHARE = 4;

/** Draw now and with each change, until the function that it gives is called. */
export function drawLoop(session: Session, parts: readonly Part[]): () => void {
  let frame = 0;
  let rest = 0;
  let begun = 0;
  let took = 0;
  const update = (): void => {
    frame = 0;
    begun = performance.now();
    for (const part of parts) part.update();
    // Charts paint in a microtask of their own, which comes before this one.
    queueMicrotask(() => {
      took = performance.now() - begun;
    });
  };
  const draw = (): void => {
    rest = 0;
    frame = requestAnimationFrame(update);
  };
  const schedule = (isAtOnce: boolean): void => {
    if (frame || (rest && !isAtOnce)) return;
    window.clearTimeout(rest);
    const left = begun + took * SHARE - performance.now();
    if (left > 0 && !isAtOnce) rest = window.setTimeout(draw, left);
    else draw();
  };
  const unlisten = session.listen(schedule);
  // Clocks go on between frames.
  const clock = window.setInterval(() => {
    if (session.experiment?.final === false) schedule(false);
  }, 1000);
  update();
  return () => {
    unlisten();
    window.clearInterval(clock);
    window.clearTimeout(rest);
    cancelAnimationFrame(frame);
  };
}
