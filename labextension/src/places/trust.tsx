/** The question whether a project's file is trusted: it comes with the folder, and nothing of it runs before. */

import { Dialog, showDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';
import { useChanges } from '../home/model_signal';
import type { Project } from '../api/places';
import type { PlacesModel } from './places_model';

interface Props {
  model: PlacesModel;
  trans: TranslationBundle;
}

/** Asks once for each content of the file, and shows how to be asked again. */
export function TrustQuestion({ model, trans }: Props): React.JSX.Element | null {
  useChanges(model.changed);
  const project = model.needsTrust ? model.project : null;
  const digest = project?.digest;
  React.useEffect(() => {
    if (project && model.isFirstReview(project.digest)) void ask(project, model, trans);
  }, [digest]);
  if (!project) return null;
  return (
    <p className="jp-Autotrain-message">
      {trans.__('This project’s autotrain.yaml is not trusted yet.')}{' '}
      <button className="jp-mod-styled" onClick={() => void ask(project, model, trans)}>
        {trans.__('Review …')}
      </button>
    </p>
  );
}

async function ask(project: Project, model: PlacesModel, trans: TranslationBundle): Promise<void> {
  const answer = await showDialog({
    title: trans.__('Trust this project’s autotrain.yaml?'),
    body: <Effects project={project} trans={trans} />,
    buttons: [
      Dialog.cancelButton({ label: trans.__('Not now') }),
      Dialog.warnButton({ label: trans.__('Trust') }),
    ],
    defaultButton: 0,
  });
  if (answer.button.accept) await model.trust(project.digest);
}

function Effects({ project, trans }: { project: Project; trans: TranslationBundle }): React.JSX.Element {
  return (
    <div className="jp-AutotrainPlaces-trust">
      <code>{project.path}</code>
      <p>{trans.__('It came with this folder and wants to set:')}</p>
      <ul>
        {project.effects.map((effect) => (
          <li key={effect}>
            <code>{effect}</code>
          </li>
        ))}
      </ul>
      <p>
        {trans.__(
          'Whoever wrote it decides where your code, data and secrets go. You are asked again when it changes.',
        )}
      </p>
    </div>
  );
}
