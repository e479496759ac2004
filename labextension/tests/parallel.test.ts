import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Brush } from '../widgets/charts/brushes';
import {
  MISSING,
  brushBetween,
  ends,
  isDrag,
  moved,
  passing,
  toggled,
  withBrush,
} from '../widgets/charts/brushes';
import { dimensionOf, flatten, numberAt, positionOf } from '../widgets/charts/dimensions';
import type { Dimension } from '../widgets/charts/dimensions';
import type { Json } from '../widgets/lib/frames';

function axis(...values: (Json | undefined)[]): Dimension {
  return dimensionOf({ key: 'x', title: 'x', values }, 'others');
}

function passed(dimension: Dimension, brush: Brush | undefined): number[] {
  const brushes = withBrush(new Map(), dimension.key, brush);
  return [...passing([dimension], brushes, dimension.values.length)];
}

test('nested parameters become one value per path', () => {
  const params = { lr: 0.1, model: { _name: 'big', width: 15, inner: { _name: 'relu' } }, sizes: [1, 2] };
  assert.deepEqual(
    [...flatten(params)],
    [
      ['lr', 0.1],
      ['model', 'big'],
      ['model.width', 15],
      ['model.inner', 'relu'],
      ['sizes', [1, 2]],
    ],
  );
});

test('numbers over two decades get a logarithmic axis, others a linear one', () => {
  const wide = axis(1e-4, 1e-2, 1);
  assert.equal(wide.isLog, true);
  assert.deepEqual([...wide.positions], [0, 0.5, 1]);
  assert.equal(axis(1, 50).isLog, false);
  assert.equal(axis(0.001, 0.2, 0.3, 0.5).isLog, false); // one value near zero makes no decades
  assert.equal(axis(2.2e-4, 6.6e-3, 7e-3, 0.052).isLog, true); // few values of a logarithmic search
  assert.equal(axis(-1, 5000).allowsLog, false);
  assert.equal(axis(0, 5000).allowsLog, false);
  assert.equal(dimensionOf({ key: 'x', title: 'x', values: [1, 1000] }, 'others', false).isLog, false);
});

test('one of several numbers has these beside its axis, those with room for them', () => {
  const texts = (options: number[], values: number[]): string[] => {
    const { ticks } = dimensionOf({ key: 'x', title: 'x', values, options }, 'others');
    return ticks.map(({ text }) => text);
  };
  assert.deepEqual(texts([128, 32, 64], [64, 64]), ['32', '64', '128']);
  assert.deepEqual(texts([0, 1, 1000], [0, 1000]), ['0', '1000']);
  assert.deepEqual(texts([1e-4, 1e-3, 1e-2], [1e-3]), ['1e-4', '0.001', '0.01']);
  const { positions } = dimensionOf({ key: 'x', title: 'x', values: [32, 64], options: [0, 64] }, 'others');
  assert.deepEqual([...positions], [0.5, 1]);
});

test('the number at a position is the one that lies there', () => {
  for (const dimension of [axis(1e-4, 1), axis(-2, 3)])
    for (const position of [0, 0.25, 1])
      assert.ok(Math.abs(positionOf(dimension, numberAt(dimension, position)) - position) < 1e-12);
});

test('booleans, words and mixtures are labels in natural order', () => {
  assert.deepEqual(axis(true, false, true).labels, ['False', 'True']);
  assert.deepEqual(axis('b10', 'b9', 'a').labels, ['a', 'b9', 'b10']);
  assert.deepEqual(axis(1, 'auto', null).labels, ['1', 'auto', 'None']);
  assert.deepEqual([...axis('a', 'b').positions], [0.25, 0.75]);
});

test('of many labels the rarest are one', () => {
  const names = Array.from({ length: 40 }, (_, i) => `name ${i}`);
  const dimension = axis(...names, 'name 39', 'name 39');
  assert.equal(dimension.labels.length, 12);
  assert.ok(dimension.labels.includes('others'));
  assert.ok(dimension.labels.includes('name 39'));
  assert.ok([...dimension.positions].every((position) => position > 0 && position < 1));
});

test('what is no finite number is missing, and passes only where missing values are chosen', () => {
  const dimension = axis(1, undefined, null, 'nan', '-inf', 3);
  assert.equal(dimension.kind, 'numbers');
  assert.equal(dimension.hasMissing, true);
  assert.deepEqual([dimension.low, dimension.high], [1, 3]);
  assert.deepEqual(passed(dimension, undefined), [1, 1, 1, 1, 1, 1]);
  assert.deepEqual(passed(dimension, { range: [2, Infinity], labels: new Set() }), [0, 0, 0, 0, 0, 1]);
  assert.deepEqual(passed(dimension, toggled(undefined, MISSING)), [0, 1, 1, 1, 1, 0]);
});

test('values that are all missing make labels of none', () => {
  const dimension = axis(undefined, undefined);
  assert.deepEqual([dimension.kind, dimension.labels.length, dimension.hasMissing], ['labels', 0, true]);
});

test('a single value lies in the middle', () => {
  const dimension = axis(7, 7);
  assert.deepEqual([...dimension.positions], [0.5, 0.5]);
  assert.deepEqual(dimension.ticks, [{ position: 0.5, text: '7' }]);
});

test('a drag brushes the numbers between its ends, open where it reaches an end of the axis', () => {
  const dimension = axis(0, 4, 10);
  assert.deepEqual(brushBetween(dimension, 0.5, 0.2)?.range, [2, 5]);
  assert.deepEqual(brushBetween(dimension, 0.5, 1)?.range, [5, Infinity]);
  assert.deepEqual([isDrag(dimension, 0.5, 0.501), isDrag(dimension, 0, 1)], [false, true]);
  assert.equal(brushBetween(dimension, 0, 1), undefined);
  assert.deepEqual(passed(dimension, brushBetween(dimension, 0.2, 0.5)), [0, 1, 0]);
});

test('a drag over labels chooses those that it touches', () => {
  const dimension = axis('a', 'b', 'c', 'd');
  assert.deepEqual([...(brushBetween(dimension, 0.3, 0.6)?.labels ?? [])], ['b', 'c']);
});

test('a key moves one end of a range, not beyond the other', () => {
  const dimension = axis(0, 10);
  const lower = moved(dimension, undefined, 'low', 0.1);
  assert.deepEqual(lower?.range, [1, Infinity]);
  const both = moved(dimension, lower, 'high', -0.5);
  assert.deepEqual(both?.range, [1, 5]);
  assert.deepEqual(moved(dimension, both, 'low', 1)?.range, [5, 5]);
  assert.equal(moved(dimension, lower, 'low', -1), undefined);
  assert.deepEqual(ends(dimension, both), [0.1, 0.5]);
});

test('the ends of an open range are those of a logarithmic axis', () => {
  const dimension = axis(1e-4, 1);
  assert.deepEqual(ends(dimension, { range: [-Infinity, 1e-2], labels: new Set() }), [0, 0.5]);
});

test('a label is put into a brush and taken out of it', () => {
  const one = toggled(undefined, 'a');
  const two = toggled(one, 'b');
  assert.deepEqual([...(two?.labels ?? [])], ['a', 'b']);
  assert.equal(toggled(one, 'a'), undefined);
});

test('brushes of several axes hold together', () => {
  const [x, y] = [axis(1, 2, 3), { ...axis('a', 'b', 'a'), key: 'y' }];
  const brushes = new Map<string, Brush>([
    ['x', { range: [2, Infinity], labels: new Set<string>() }],
    ['y', { range: undefined, labels: new Set(['a']) }],
  ]);
  assert.deepEqual([...passing([x, y], brushes, 3)], [0, 0, 1]);
});

test('ticks are round numbers within the axis', () => {
  const texts = (...ends: number[]): string[] => axis(...ends).ticks.map(({ text }) => text);
  assert.deepEqual(texts(0, 1), ['0', '0.2', '0.4', '0.6', '0.8', '1']);
  assert.deepEqual(texts(1e-4, 1), ['1e-4', '0.001', '0.01', '0.1', '1']);
  assert.deepEqual(texts(0.02, 3), ['0.02', '0.1', '0.2', '1', '2']);
  assert.deepEqual(texts(1e-9, 1e-2), ['1e-9', '1e-8', '1e-7', '1e-6', '1e-5', '1e-4', '0.001', '0.01']);
});
