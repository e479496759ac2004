/** The settings of a profile: fields from its type's schema, and faults from the server's own validation. */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';
import * as api from '../api/places';
import type { FieldFault, ProfileSettings } from '../api/places';
import { FieldView, Faults } from './field_view';
import { changeOf, faultsAt, fieldsOf, valuesOf } from './fields';
import type { Field, Schema, Values } from './fields';
import { message } from './places_model';

interface Props {
  type: string;
  /** The profile to edit; none: a new one. */
  name: string | undefined;
  settings: ProfileSettings | undefined;
  trans: TranslationBundle;
  onEnd: (isSaved: boolean) => void;
}

interface FormState {
  isLoaded: boolean;
  fields: Field[];
  values: Values;
  faults: FieldFault[];
  set: (key: string, value: string) => void;
  save: (newName: string) => Promise<void>;
}

export function SettingsForm(props: Props): React.JSX.Element {
  const { name, trans, onEnd } = props;
  const [newName, setNewName] = React.useState('');
  const { isLoaded, fields, values, faults, set, save } = useForm(props);
  if (!isLoaded) return <p>{trans.__('Loading…')}</p>;
  return (
    <form
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        void save(newName);
      }}
    >
      {name === undefined && <NameField value={newName} trans={trans} onChange={setNewName} />}
      {fields.map((field) => (
        <FieldView
          key={field.key}
          field={field}
          value={values[field.key] ?? ''}
          faults={faultsAt(faults, fields, field.key)}
          trans={trans}
          onChange={(value) => {
            set(field.key, value);
          }}
        />
      ))}
      <Faults faults={faultsAt(faults, fields)} />
      <div className="jp-AutotrainPlaces-actions">
        <button type="submit" className="jp-mod-styled jp-mod-accept">
          {trans.__('Save')}
        </button>
        <button
          type="button"
          className="jp-mod-styled"
          onClick={() => {
            onEnd(false);
          }}
        >
          {trans.__('Cancel')}
        </button>
      </div>
    </form>
  );
}

function useForm({ type, name, settings, onEnd }: Props): FormState {
  const [schema, setSchema] = React.useState<Schema>();
  const [edited, setEdited] = React.useState<Values>({});
  const [faults, setFaults] = React.useState<FieldFault[]>(settings?.faults ?? []);
  const fields = React.useMemo(() => (schema ? fieldsOf(schema, settings) : []), [schema, settings]);
  const before = React.useMemo(() => valuesOf(fields, settings), [fields, settings]);
  const values = { ...before, ...edited };
  const refuse = (reason: unknown): void => {
    setFaults([{ path: [], text: message(reason) }]);
  };
  React.useEffect(() => {
    api.typeSchema(type).then(setSchema, refuse);
  }, [type]);
  const save = async (newName: string): Promise<void> => {
    const { unset, ...added } = changeOf(fields, before, values);
    try {
      const saved =
        name === undefined
          ? await api.addProfile(newName, { type, ...added })
          : await api.editProfile(name, { ...added, unset: unset ?? [] });
      setFaults(saved.faults);
      if (saved.saved) onEnd(true);
    } catch (reason) {
      refuse(reason);
    }
  };
  const set = (key: string, value: string): void => {
    setEdited({ ...edited, [key]: value });
  };
  return { isLoaded: schema !== undefined || faults.length > 0, fields, values, faults, set, save };
}

function NameField(props: {
  value: string;
  trans: TranslationBundle;
  onChange: (value: string) => void;
}): React.JSX.Element {
  return (
    <div className="jp-AutotrainPlaces-field">
      <label>
        <span>{props.trans.__('Name')} *</span>
        <input
          className="jp-mod-styled"
          required
          maxLength={64}
          value={props.value}
          onChange={(event) => {
            props.onChange(event.target.value);
          }}
        />
      </label>
    </div>
  );
}
