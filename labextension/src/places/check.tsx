/** A check of a place, step by step as each ends. */

import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';
import { duration } from '../../widgets/lib/format';
import type { CheckStep } from '../api/places';
import type { Check } from './places_model';

const TOLD_S = 0.05; // shorter times say nothing

interface Props {
  check: Check;
  trans: TranslationBundle;
  onCancel: () => void;
}

export function CheckView({ check, trans, onCancel }: Props): React.JSX.Element {
  return (
    <div className="jp-AutotrainPlaces-check">
      <ol aria-label={trans.__('Steps of the check')}>
        {check.steps.map((step, index) => (
          <Step key={index} step={step} trans={trans} />
        ))}
      </ol>
      <p role="status">{summary(check, trans)}</p>
      {check.state === 'running' && (
        <>
          {check.error && (
            <p role="alert" className="jp-Autotrain-message">
              {trans.__('Could not cancel: %1', check.error)}
            </p>
          )}
          <button className="jp-mod-styled" onClick={onCancel}>
            {trans.__('Cancel the check')}
          </button>
        </>
      )}
    </div>
  );
}

function Step({ step, trans }: { step: CheckStep; trans: TranslationBundle }): React.JSX.Element {
  const word = step.is_good ? trans.__('ok') : trans.__('failed');
  const took = step.took_s !== null && step.took_s >= TOLD_S ? ` (${duration(step.took_s)})` : '';
  return (
    <li data-good={step.is_good}>
      <strong>{word}</strong> {[step.node, step.name].filter(Boolean).join(' · ')}: {step.text}
      {took}
      {step.action && <div>{step.action}</div>}
    </li>
  );
}

function summary(check: Check, trans: TranslationBundle): string {
  const texts = {
    running: check.isLost
      ? trans.__('The server does not answer. Trying again…')
      : trans.__('Still checking…'),
    done: check.good
      ? trans.__('It works: a trial ran there, and its metric came back.')
      : trans.__('It does not work.'),
    cancelled: trans.__('Check cancelled. What it started is being cleaned up.'),
    'too long': trans.__('The check took too long and was stopped.'),
    failed: check.error,
  };
  return texts[check.state];
}
