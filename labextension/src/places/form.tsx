/** A form for a profile, made from the JSON Schema of its type; faults come from the server's own validation. */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';
import * as api from '../api/places';
import type { BackendType, ProfileSettings } from '../api/places';
import { message } from './places_model';
import { SettingsForm } from './settings_form';

interface Props {
  /** The profile to edit; none: a new one. */
  name?: string;
  trans: TranslationBundle;
  onEnd: (isSaved: boolean) => void;
}

export function ProfileForm({ name, trans, onEnd }: Props): React.JSX.Element {
  const { types, type, setType, settings, error } = useProfile(name);
  return (
    <div className="jp-AutotrainPlaces-form" role="group" aria-label={name ?? trans.__('New place')}>
      {name === undefined && (
        <label>
          <span>{trans.__('Kind of place')}</span>
          <select
            className="jp-mod-styled"
            value={type}
            onChange={(event) => {
              setType(event.target.value);
            }}
          >
            <option value="">{trans.__('Choose …')}</option>
            {types.map((one) => (
              <option key={one.name} value={one.name} title={one.text}>
                {one.name}
              </option>
            ))}
          </select>
        </label>
      )}
      {error && <p className="jp-Autotrain-message">{error}</p>}
      {type ? (
        <SettingsForm key={type} type={type} name={name} settings={settings} trans={trans} onEnd={onEnd} />
      ) : (
        <button
          className="jp-mod-styled"
          onClick={() => {
            onEnd(false);
          }}
        >
          {trans.__('Cancel')}
        </button>
      )}
    </div>
  );
}

interface Loaded {
  types: BackendType[];
  type: string;
  setType: (type: string) => void;
  settings: ProfileSettings | undefined;
  error: string;
}

/** What the server knows of a profile; of a new one the types to choose from. */
function useProfile(name: string | undefined): Loaded {
  const [types, setTypes] = React.useState<BackendType[]>([]);
  const [type, setType] = React.useState('');
  const [settings, setSettings] = React.useState<ProfileSettings>();
  const [error, setError] = React.useState('');
  React.useEffect(() => {
    const load = async (): Promise<void> => {
      if (name === undefined) {
        setTypes(await api.listTypes());
        return;
      }
      const found = await api.profileSettings(name);
      setSettings(found);
      setType(found.type);
    };
    load().catch((reason: unknown) => {
      setError(message(reason));
    });
  }, [name]);
  return { types, type, setType, settings, error };
}
