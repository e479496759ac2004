/** What can be done with the experiments that are chosen, as buttons. */

import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import * as React from 'react';
import { CHOSEN_COMMANDS } from './commands';

interface Props {
  commands: CommandRegistry;
  chosen: number;
  trans: TranslationBundle;
  onClear: () => void;
}

export function ChosenBar({ commands, chosen, trans, onClear }: Props): React.JSX.Element | null {
  if (chosen === 0) return null;
  const offered = CHOSEN_COMMANDS.filter((id) => commands.hasCommand(id) && commands.isEnabled(id));
  return (
    <div className="jp-Autotrain-chosen" role="toolbar" aria-label={trans.__('Chosen experiments')}>
      <span>{trans.__('%1 chosen', chosen)}</span>
      {offered.map((id) => (
        <button
          key={id}
          className="jp-mod-styled"
          title={commands.caption(id)}
          onClick={() => void commands.execute(id)}
        >
          {commands.label(id)}
        </button>
      ))}
      <button className="jp-mod-styled" onClick={onClear}>
        {trans.__('Clear')}
      </button>
    </div>
  );
}
