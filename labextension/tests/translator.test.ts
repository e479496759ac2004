import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ENGLISH, lendTranslator, pageTranslator } from '../widgets/lib/translator';

test('a widget is translated by the page around, and is English where none does', () => {
  Object.assign(globalThis, { document: new EventTarget() });
  assert.equal(pageTranslator(), ENGLISH);
  const german = { ...ENGLISH, __: () => 'Ein Schritt' };
  lendTranslator(german);
  assert.equal(pageTranslator().__('One step'), 'Ein Schritt');
});

test('in English the values are filled in, the amount first', () => {
  assert.equal(ENGLISH.__('%2 on %1', 'gpu', 8), '8 on gpu');
  assert.equal(ENGLISH._n('%1 block on %2', '%1 blocks on %2', 1, 'gpu'), '1 block on gpu');
  assert.equal(ENGLISH._n('%1 block on %2', '%1 blocks on %2', 2, 'gpu'), '2 blocks on gpu');
});
