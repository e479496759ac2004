/** Which page of the experiments is shown, and the way to the others. */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';
import { PAGE } from './table_model';
import type { TableModel } from './table_model';

interface Props {
  model: TableModel;
  total: number;
  trans: TranslationBundle;
}

export function Pager({ model, total, trans }: Props): React.JSX.Element {
  const { page } = model.query;
  const last = model.pages - 1;
  const first = page * PAGE + 1;
  const buttons = [
    { text: trans.__('First page'), sign: '«', to: 0 },
    { text: trans.__('Previous page'), sign: '‹', to: page - 1 },
    { text: trans.__('Next page'), sign: '›', to: page + 1 },
    { text: trans.__('Last page'), sign: '»', to: last },
  ];
  return (
    <div className="jp-AutotrainTable-pager" role="navigation" aria-label={trans.__('Pages')}>
      <span role="status">
        {total > 0
          ? trans.__('%1–%2 of %3', first, Math.min(first + PAGE - 1, total), total.toLocaleString())
          : trans.__('No experiments match.')}
      </span>
      {last > 0 &&
        buttons.map(({ text, sign, to }) => (
          <button
            key={text}
            className="jp-mod-styled"
            title={text}
            aria-label={text}
            disabled={to < 0 || to > last || to === page}
            onClick={() => {
              model.show({ page: to });
            }}
          >
            {sign}
          </button>
        ))}
    </div>
  );
}
