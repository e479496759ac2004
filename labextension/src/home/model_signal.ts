/** The signal by which a model tells its changes, and the two ways to follow it: neither misses what came before. */

import { Signal } from '@lumino/signaling';
import type { ISignal } from '@lumino/signaling';
import * as React from 'react';

/** Changes that are counted, so that a view can tell what it has drawn. */
export interface CountedSignal extends ISignal<unknown, void> {
  readonly version: number;
}

export class ModelSignal<T> extends Signal<T, void> implements CountedSignal {
  version = 0;

  override emit(): void {
    this.version += 1;
    super.emit(undefined);
  }
}

/**
 * Call now and at each change, so that what is there already counts, too.
 * @returns Ends it.
 */
export function eachChange(call: () => void, ...changes: ISignal<unknown, unknown>[]): () => void {
  const slot = (): void => {
    call();
  };
  for (const each of changes) each.connect(slot);
  call();
  return () => {
    for (const each of changes) each.disconnect(slot);
  };
}

/**
 * Draw again at each change.
 *
 * A view connects after its first paint. What changes in between reaches nobody, so React compares versions once it
 * has connected.
 */
export function useChanges(...changes: CountedSignal[]): void {
  const connect = React.useCallback((render: () => void) => {
    for (const each of changes) each.connect(render);
    return () => {
      for (const each of changes) each.disconnect(render);
    };
  }, changes);
  React.useSyncExternalStore(connect, () => versionOf(changes));
}

/** A number that grows with each change of any of them. */
export function versionOf(changes: readonly CountedSignal[]): number {
  return changes.reduce((sum, each) => sum + each.version, 0);
}
