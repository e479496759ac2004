/** The icons of what shows experiments, their places and their tags. */

import { LabIcon } from '@jupyterlab/ui-components';

export const experimentsIcon = new LabIcon({
  name: 'autotrain:experiments',
  svgstr:
    '<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 16 16"><path class="jp-icon3" fill="#616161" d="M1 14V2h1v11h13v1zM4 11l3-5 3 3 4-6 .8.6L10.2 11 7 7.6 4.8 11.5z"/></svg>',
});

export const placesIcon = new LabIcon({
  name: 'autotrain:places',
  svgstr:
    '<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 16 16"><path class="jp-icon3" fill="#616161" fill-rule="evenodd" d="M2 2h12v5H2zm1.2 1.2v2.6h9.6V3.2zM2 9h12v5H2zm1.2 1.2v2.6h9.6v-2.6zM4.3 3.9h1.3v1.2H4.3zm0 7h1.3v1.2H4.3z"/></svg>',
});

/** JupyterLab's own is too small for a toolbar. */
export const tagIcon = new LabIcon({
  name: 'autotrain:tag',
  svgstr:
    '<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 16 16"><path class="jp-icon3" fill="#616161" fill-rule="evenodd" d="M2 2h5.6l6.6 6.6-5.6 5.6L2 7.6zm2.8 4a1.2 1.2 0 1 0 0-2.4 1.2 1.2 0 0 0 0 2.4z"/></svg>',
});
