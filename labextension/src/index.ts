/** The plugins of the extension. */

import { actionsPlugin, selectionPlugin } from './actions/plugin';
import { headerPlugin } from './header/plugin';
import { comparePlugin } from './compare/plugin';
import { homePlugin } from './home/plugin';
import { notebookPlugin } from './notebook/plugin';
import { panelPlugin } from './panel/plugin';
import { placesPlugin } from './places/plugin';
import { sidebarPlugin } from './sidebar/plugin';
import { preferencesPlugin } from './sidebar/preferences_plugin';
import { summaryPlugin } from './summary/plugin';
import { tablePlugin } from './table/plugin';

export default [
  homePlugin,
  selectionPlugin,
  actionsPlugin,
  preferencesPlugin,
  sidebarPlugin,
  tablePlugin,
  panelPlugin,
  comparePlugin,
  headerPlugin,
  notebookPlugin,
  placesPlugin,
  summaryPlugin,
];
