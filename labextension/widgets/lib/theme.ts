/** Colours: canvases do not follow style sheets by themselves. */

/** Distinct with colour blindness, readable on white and on black; dashes distinguish without colour. */
const PALETTE = ['#3b7dd8', '#e08214', '#1b9e77', '#c24e9a', '#56b4e9', '#8a6200', '#8c6bb1', '#d1495b'];
const DASHES = [[], [7, 3], [2, 3], [9, 3, 2, 3]];

/** The colour of a trial: by its number, so it stays whatever else is shown. */
export function colorOf(trial: number): string {
  return PALETTE[(trial - 1) % PALETTE.length] ?? '#888';
}

export function dashOf(trial: number): number[] {
  return DASHES[Math.floor((trial - 1) / PALETTE.length) % DASHES.length] ?? [];
}

export function cssColor(element: Element, name: string, fallback: string): string {
  return getComputedStyle(element).getPropertyValue(name).trim() || fallback;
}

/** Calls back when the theme of JupyterLab, VS Code, Colab or the system changes; gives the way to end that. */
export function onThemeChange(callback: () => void): () => void {
  const observer = new MutationObserver(() => requestAnimationFrame(callback));
  const attributeFilter = ['data-jp-theme-name', 'data-jp-theme-light', 'class', 'data-vscode-theme-id'];
  observer.observe(document.body, { attributes: true, attributeFilter });
  observer.observe(document.documentElement, { attributes: true, attributeFilter: ['theme'] });
  const system = matchMedia('(prefers-color-scheme: dark)');
  system.addEventListener('change', callback);
  return () => {
    observer.disconnect();
    system.removeEventListener('change', callback);
  };
}
