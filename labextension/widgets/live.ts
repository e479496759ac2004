/** The live view of one experiment. */

import type { AnyModel } from '@anywidget/types';
import 'uplot/dist/uPlot.min.css';
import './live.css';
import './notes.css';
import { liveView } from './lib/live_view';
import { tellOpened } from './lib/opened';
import { Session } from './lib/session';
import { pageTranslator } from './lib/translator';

interface Context {
  model: AnyModel;
  el: HTMLElement;
}

/** Called once per model: `initialize` opens the session, and every view that `render` makes draws from it. */
export default function live(): object {
  let session: Session | undefined;
  return {
    initialize({ model }: Context): () => void {
      const opened = (session = new Session(model, pageTranslator()));
      tellOpened(model.get('view_id'));
      return () => {
        opened.close();
      };
    },
    render({ model, el }: Context): (() => void) | undefined {
      return session && liveView(session, el, model.get('folded') === true);
    },
  };
}
