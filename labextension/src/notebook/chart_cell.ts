/** A chart as a cell of a notebook: its picture travels in the cell, so it is seen everywhere. Pure. */

/** As notebooks keep it. */
export interface ChartCell {
  cell_type: 'markdown';
  metadata: Record<string, never>;
  source: string;
  attachments: Record<string, { 'image/png': string }>;
}

/**
 * @param id Of the experiment; "" where the chart shows several.
 * @param png The picture, base64.
 */
export function chartCell(id: string, experiment: string, metric: string, png: string): ChartCell {
  const name = plainText(experiment);
  const of = plainText(metric);
  const file = `${`${name}-${of}`.replace(/[^\w.@-]+/g, '_')}.png`;
  const live = id ? `; live: \`%autotrain show ${name}\`` : '';
  const shown = `${of} of ${name}`;
  return {
    cell_type: 'markdown',
    metadata: {},
    source: `![${shown}](attachment:${file})\n\n${shown}${live}`,
    attachments: { [file]: { 'image/png': png } },
  };
}

/** Names are anybody's text: what Markdown or HTML would read as more than text is left out. */
function plainText(text: string): string {
  return text.replace(/[^\p{L}\p{N} .,:@/()+=-]/gu, '_').replace(/[()]/g, '_');
}
