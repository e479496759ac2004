/** The panel of places: each profile with its state, what it has, what runs there, and a check of it. */

import { Dialog, showDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import * as React from 'react';
import type { Place } from '../api/places';
import { useChanges } from '../home/model_signal';
import { CheckView } from './check';
import { ProfileForm } from './form';
import { Nodes, Running, State } from './place_facts';
import type { PlacesModel } from './places_model';
import { TrustQuestion } from './trust';

export interface Props {
  model: PlacesModel;
  commands: CommandRegistry;
  trans: TranslationBundle;
}

export function PlacesPanel({ model, commands, trans }: Props): React.JSX.Element {
  useChanges(model.changed);
  const [isAdding, setAdding] = React.useState(false);
  return (
    <>
      <div className="jp-AutotrainPlaces-head">
        <h2>{trans.__('Places')}</h2>
        <button
          className="jp-mod-styled"
          onClick={() => {
            void model.refresh();
          }}
        >
          {trans.__('Refresh')}
        </button>
        {model.canWrite && (
          <button
            className="jp-mod-styled"
            aria-expanded={isAdding}
            onClick={() => {
              setAdding(true);
            }}
          >
            {trans.__('Add a place')}
          </button>
        )}
      </div>
      <Files model={model} trans={trans} />
      <TrustQuestion model={model} trans={trans} />
      {isAdding && (
        <ProfileForm
          trans={trans}
          onEnd={(isSaved) => {
            setAdding(false);
            if (isSaved) void model.refresh();
          }}
        />
      )}
      {model.places?.map((place) => (
        <PlaceView key={place.name} place={place} model={model} commands={commands} trans={trans} />
      ))}
    </>
  );
}

/** Where profiles are defined, which level wins, and what is wrong. */
function Files({ model, trans }: Omit<Props, 'commands'>): React.JSX.Element {
  const project = model.files.find((file) => file.level === 'project');
  const user = model.files.find((file) => file.level === 'user');
  const wrong = [model.error, ...model.faults].filter(Boolean);
  return (
    <>
      {user && (
        <p className="jp-AutotrainPlaces-files">
          {trans.__('Your profiles:')} <code>{user.path}</code>
          {!user.exists && ` (${trans.__('not there yet')})`}
          {'. '}
          {project?.path
            ? trans.__('The project’s profiles (these take precedence):')
            : trans.__('No project file.')}{' '}
          {project?.path && <code>{project.path}</code>}
        </p>
      )}
      {!model.canWrite && <p>{trans.__('You can look at places here, but not change or check them.')}</p>}
      <p role="status" className="jp-Autotrain-message" hidden={!wrong.length}>
        {wrong.join(' ')}
      </p>
    </>
  );
}

function PlaceView({ place, model, commands, trans }: Props & { place: Place }): React.JSX.Element {
  const [isEditing, setEditing] = React.useState(false);
  const inventory = model.inventories.get(place.name);
  const check = model.checks.get(place.name);
  const end = (isSaved: boolean): void => {
    setEditing(false);
    if (isSaved) void model.refresh();
  };
  const nodes = typeof inventory === 'object' ? (inventory.inventory?.nodes ?? []) : [];
  return (
    <section className="jp-AutotrainPlaces-place" aria-label={place.name}>
      <div className="jp-AutotrainPlaces-head">
        <h3>{place.name}</h3>
        <span>{[place.type, origin(place, trans)].filter(Boolean).join(' · ')}</span>
        {model.canWrite && (
          <Actions
            place={place}
            model={model}
            trans={trans}
            onEdit={() => {
              setEditing(true);
            }}
          />
        )}
      </div>
      <State place={place} inventory={inventory} trans={trans} />
      {nodes.length > 0 && <Nodes place={place} nodes={nodes} trans={trans} />}
      <Running place={place} commands={commands} trans={trans} />
      {check && (
        <CheckView
          check={check}
          trans={trans}
          onCancel={() => {
            void model.cancel(place.name);
          }}
        />
      )}
      {isEditing && <ProfileForm name={place.name} trans={trans} onEnd={end} />}
    </section>
  );
}

function origin(place: Place, trans: TranslationBundle): string {
  if (place.level === 'type') return '';
  const levels = { user: trans.__('your profile'), project: trans.__('the project’s profile') };
  const hidden = place.hides === 'user' ? ` (${trans.__('overrides your profile of the same name')})` : '';
  return levels[place.level] + hidden;
}

function Actions(props: {
  place: Place;
  model: PlacesModel;
  trans: TranslationBundle;
  onEdit: () => void;
}): React.JSX.Element {
  const { place, model, trans, onEdit } = props;
  const remove = async (): Promise<void> => {
    const answer = await showDialog({
      title: trans.__('Remove %1?', place.name),
      body: trans.__('It is removed from your profiles file. Trials that run there continue.'),
      buttons: [Dialog.cancelButton(), Dialog.warnButton({ label: trans.__('Remove') })],
    });
    if (answer.button.accept) await model.remove(place.name);
  };
  return (
    <span className="jp-AutotrainPlaces-actions">
      {!place.faults.length && (
        <button
          className="jp-mod-styled"
          disabled={model.checks.get(place.name)?.state === 'running'}
          aria-label={trans.__('Check %1', place.name)}
          onClick={() => void model.check(place.name)}
        >
          {trans.__('Check')}
        </button>
      )}
      {place.level === 'user' && (
        <>
          <button className="jp-mod-styled" aria-label={trans.__('Edit %1', place.name)} onClick={onEdit}>
            {trans.__('Edit')}
          </button>
          <button
            className="jp-mod-styled"
            aria-label={trans.__('Remove %1', place.name)}
            onClick={() => void remove()}
          >
            {trans.__('Remove')}
          </button>
        </>
      )}
    </span>
  );
}
