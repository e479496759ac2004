import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ProfileSettings } from '../src/api/places';
import { plain } from '../src/places/amounts';
import { changeOf, faultsAt, fieldsOf, valuesOf } from '../src/places/fields';
import type { Schema } from '../src/places/fields';
import { ENGLISH } from '../widgets/lib/translator';

const schema: Schema = {
  required: ['hosts', 'type'],
  properties: {
    user: { anyOf: [{ type: 'string' }, { type: 'null' }], description: 'The account.', examples: ['ada'] },
    port: { anyOf: [{ type: 'integer' }, { type: 'null' }] },
    transport: { $ref: '#/$defs/Kind' },
    requeue: { type: 'boolean' },
    cache: { type: ['string', 'integer'] },
    hosts: { type: 'array' },
    type: { const: 'ssh' },
  },
  $defs: { Kind: { type: 'string', enum: ['paramiko', 'openssh'] } },
};
const settings: ProfileSettings = {
  type: 'ssh',
  yaml: { hosts: '[gpu1]', user: "'12'", colour: 'red' },
  texts: { user: '12', colour: 'red' },
  hidden: ['token'],
  location: 'backends.yaml line 1',
  faults: [],
};

test('each property is a field of its kind, and those that are needed come first', () => {
  const fields = fieldsOf(schema);
  assert.equal(fields[0]?.key, 'hosts');
  const kinds = Object.fromEntries(fields.map((field) => [field.key, field.kind]));
  assert.deepEqual(kinds, {
    hosts: 'yaml',
    user: 'text',
    port: 'yaml',
    transport: 'choice',
    requeue: 'choice',
    cache: 'yaml',
  });
  assert.deepEqual(fields.find((field) => field.key === 'transport')?.choices, ['paramiko', 'openssh']);
  assert.deepEqual(fields.find((field) => field.key === 'requeue')?.choices, ['true', 'false']);
  assert.equal(fields.find((field) => field.key === 'user')?.example, 'ada');
});

test('what a profile has besides its schema is a field too, and text is shown as it is', () => {
  const fields = fieldsOf(schema, settings);
  assert.deepEqual(
    fields.slice(-2).map((field) => [field.key, field.isHidden]),
    [
      ['colour', false],
      ['token', true],
    ],
  );
  const values = valuesOf(fields, settings);
  assert.equal(values.user, '12');
  assert.equal(values.hosts, '[gpu1]');
  assert.equal(values.token, '');
});

test('only what differs is sent, and what looks like a secret is taken away', () => {
  const fields = fieldsOf(schema, settings);
  const before = valuesOf(fields, settings);
  assert.deepEqual(changeOf(fields, before, before), { texts: {}, yaml: {}, unset: ['token'] });
  const after = { ...before, user: '', port: '2222', colour: 'blue' };
  assert.deepEqual(changeOf(fields, before, after), {
    texts: {},
    yaml: { port: '2222', colour: 'blue' },
    unset: ['user', 'token'],
  });
  assert.deepEqual(changeOf(fields, before, { ...before, user: 'yes' }).texts, { user: 'yes' });
});

test('faults are at their field, others beside all', () => {
  const fields = fieldsOf(schema);
  const faults = [
    { path: ['hosts', '0', 'port'], text: 'a' },
    { path: ['nodes'], text: 'b' },
    { path: [], text: 'c' },
  ];
  assert.deepEqual(
    faultsAt(faults, fields, 'hosts').map((fault) => fault.text),
    ['a'],
  );
  assert.deepEqual(
    faultsAt(faults, fields).map((fault) => fault.text),
    ['b', 'c'],
  );
});

test('amounts are short, and what is not known is a dash', () => {
  assert.equal(plain.bytes(null), '–');
  assert.equal(plain.bytes(68_719_476_736), '68.7 GB');
  assert.equal(plain.bytes(0), '0 B');
  assert.equal(plain.count(null), '–');
  const gpu = { kind: 'NVIDIA H100', memory_bytes: 80_000_000_000, busy: false };
  assert.equal(plain.gpus([gpu, { ...gpu, busy: true }], ENGLISH), '2 × NVIDIA H100 (80 GB), 1 busy');
  assert.equal(plain.gpus([], ENGLISH), '0');
});

test('the words of amounts are translated', () => {
  const other = {
    ...ENGLISH,
    __: (text: string, ...values: unknown[]) => `<${ENGLISH.__(text, ...values)}>`,
  };
  assert.equal(plain.gpus([{ kind: null, memory_bytes: null, busy: true }], other), '1 × <GPU>, <1 busy>');
});
