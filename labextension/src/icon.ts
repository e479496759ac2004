/** The icon of everything that shows experiments. */

import { LabIcon } from '@jupyterlab/ui-components';

export const experimentsIcon = new LabIcon({
  name: 'autotrain:experiments',
  svgstr:
    '<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 16 16"><path class="jp-icon3" fill="#616161" d="M1 14V2h1v11h13v1zM4 11l3-5 3 3 4-6 .8.6L10.2 11 7 7.6 4.8 11.5z"/></svg>',
});
