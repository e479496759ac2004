/** What a place is like now: its state, its nodes, and what runs there. */

import type { TranslationBundle } from '@jupyterlab/translation';
import type { CommandRegistry } from '@lumino/commands';
import * as React from 'react';
import type { Inventory, Place, PlaceNode } from '../api/places';
import { plain as written } from './amounts';

const OPEN = 'autotrain:open-experiment';

export function State(props: {
  place: Place;
  inventory: Inventory | 'asking' | undefined;
  trans: TranslationBundle;
}): React.JSX.Element {
  const { place, inventory, trans } = props;
  if (place.faults.length)
    return <p className="jp-Autotrain-message">{`${trans.__('Problem:')} ${place.faults.join(' ')}`}</p>;
  if (!inventory || inventory === 'asking') return <p>{trans.__('Checking…')}</p>;
  const state = inventory.usable ? trans.__('Usable.') : trans.__('Not usable.');
  return (
    <p className={inventory.usable ? undefined : 'jp-Autotrain-message'}>{`${state} ${inventory.reason}`}</p>
  );
}

export function Nodes(props: {
  place: Place;
  nodes: PlaceNode[];
  trans: TranslationBundle;
}): React.JSX.Element {
  const { place, nodes, trans } = props;
  return (
    <table aria-label={trans.__('Nodes of %1', place.name)}>
      <thead>
        <tr>
          <th scope="col">{trans.__('Node')}</th>
          <th scope="col">{trans.__('CPUs')}</th>
          <th scope="col">{trans.__('Memory')}</th>
          <th scope="col">{trans.__('GPUs')}</th>
        </tr>
      </thead>
      <tbody>
        {nodes.map((node) => (
          <tr key={node.name}>
            <th scope="row">{node.name}</th>
            <td>{written.count(node.cpus)}</td>
            <td>{written.bytes(node.memory_bytes)}</td>
            <td>{[written.gpus(node.accelerators, trans), node.unavailable].filter(Boolean).join('; ')}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** What runs there now, by experiment. */
export function Running(props: {
  place: Place;
  commands: CommandRegistry;
  trans: TranslationBundle;
}): React.JSX.Element {
  const { place, commands, trans } = props;
  if (!place.running) return <p>{trans.__('Nothing runs there now.')}</p>;
  const ids = [...new Set(place.trials.map((trial) => trial.experiment))];
  const others = place.running - place.trials.length;
  return (
    <div>
      {trans._n('%1 trial runs there now:', '%1 trials run there now:', place.running)}
      <ul aria-label={trans.__('Running on %1', place.name)}>
        {ids.map((id) => {
          const trials = place.trials.filter((trial) => trial.experiment === id);
          const numbers = trials.map((trial) => [trial.trial, ...trial.nodes].join(' @ '));
          const text = `${trials[0]?.name ?? id}: ${numbers.join(', ')}`;
          return (
            <li key={id}>
              {commands.hasCommand(OPEN) ? (
                <button
                  className="jp-AutotrainPlaces-link"
                  onClick={() => void commands.execute(OPEN, { id })}
                >
                  {text}
                </button>
              ) : (
                text
              )}
            </li>
          );
        })}
      </ul>
      {others > 0 && trans.__('and %1 more', others)}
    </div>
  );
}
