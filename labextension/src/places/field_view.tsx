/** One field of a form, with its description and what is wrong with it. */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';
import type { FieldFault } from '../api/places';
import type { Field } from './fields';

interface FieldProps {
  field: Field;
  value: string;
  faults: FieldFault[];
  trans: TranslationBundle;
  onChange: (value: string) => void;
}

export function FieldView({ field, value, faults, trans, onChange }: FieldProps): React.JSX.Element {
  const id = React.useId();
  const shared = {
    className: 'jp-mod-styled',
    value,
    'aria-invalid': faults.length > 0,
    'aria-describedby': id,
  };
  const example = field.example && trans.__('For example %1.', field.example);
  return (
    <div className="jp-AutotrainPlaces-field">
      <label>
        <span>{field.isRequired ? `${field.key} *` : field.key}</span>
        {field.kind === 'choice' ? (
          <select
            {...shared}
            onChange={(event) => {
              onChange(event.target.value);
            }}
          >
            <option value="">{trans.__('(default)')}</option>
            {field.choices.map((choice) => (
              <option key={choice}>{choice}</option>
            ))}
          </select>
        ) : (
          <input
            {...shared}
            required={field.isRequired}
            spellCheck={false}
            autoComplete="off"
            onChange={(event) => {
              onChange(event.target.value);
            }}
          />
        )}
      </label>
      <div id={id} className="jp-AutotrainPlaces-hint">
        {[field.description, example].filter(Boolean).join(' ')}
        {field.isHidden && (
          <p>{trans.__('This looks like a secret: it is not shown, and saving removes it from the file.')}</p>
        )}
        <Faults faults={faults} />
      </div>
    </div>
  );
}

export function Faults({ faults }: { faults: FieldFault[] }): React.JSX.Element {
  return (
    <div role="alert">
      {faults.map((fault) => (
        <p key={fault.text} className="jp-AutotrainPlaces-fault">
          {fault.text}
        </p>
      ))}
    </div>
  );
}
