/** The fields of a form, from the JSON Schema of a profile's type, and what a form sends. Pure. */

import type { FieldFault, ProfileChange, ProfileSettings } from '../api/places';

export interface Schema {
  type?: string | string[];
  properties?: Record<string, Schema>;
  required?: string[];
  anyOf?: Schema[];
  enum?: unknown[];
  const?: unknown;
  $ref?: string;
  $defs?: Record<string, Schema>;
  description?: string;
  default?: unknown;
  examples?: string[];
}

/** `text` is sent as it is; the others as one writes them after their key in the file. */
export type FieldKind = 'text' | 'choice' | 'yaml';

export interface Field {
  key: string;
  kind: FieldKind;
  choices: string[];
  description: string;
  example: string;
  isRequired: boolean;
  /** Its value in the file looks like a secret: it is not told, and taken away when the form is saved. */
  isHidden: boolean;
}

export type Values = Record<string, string>;

/** The fields of a type, those that are needed first, then what the profile has besides. */
export function fieldsOf(schema: Schema, settings?: ProfileSettings): Field[] {
  const hidden = new Set(settings?.hidden);
  const found = Object.entries(schema.properties ?? {})
    .filter(([key]) => key !== 'type')
    .map(([key, property]) => fieldOf(schema, key, property, hidden.has(key)));
  const known = new Set(found.map((field) => field.key));
  const others = [...Object.keys(settings?.yaml ?? {}), ...hidden].filter((key) => !known.has(key));
  const unknown = others.map((key) => fieldOf(schema, key, {}, hidden.has(key)));
  return [...found.filter((f) => f.isRequired), ...found.filter((f) => !f.isRequired), ...unknown];
}

function fieldOf(schema: Schema, key: string, property: Schema, isHidden: boolean): Field {
  const meant = meaning(schema, property);
  const choices = choicesOf(meant);
  return {
    key,
    kind: choices.length ? 'choice' : meant.type === 'string' ? 'text' : 'yaml',
    choices,
    description: property.description ?? '',
    example: property.examples?.[0] ?? '',
    isRequired: schema.required?.includes(key) ?? false,
    isHidden,
  };
}

/** What a property is where it is set: the one alternative to null, with its definition. */
function meaning(schema: Schema, property: Schema): Schema {
  if (property.$ref) return meaning(schema, schema.$defs?.[property.$ref.split('/').at(-1) ?? ''] ?? {});
  const options = (property.anyOf ?? []).filter((option) => option.type !== 'null');
  const [only] = options;
  if (only && options.length === 1) return meaning(schema, only);
  return property;
}

function choicesOf(meant: Schema): string[] {
  if (meant.type === 'boolean') return ['true', 'false'];
  return (meant.enum ?? []).map(String);
}

/** What the fields show at first. */
export function valuesOf(fields: Field[], settings?: ProfileSettings): Values {
  const values = fields.map((field) => {
    const text = field.kind === 'text' ? settings?.texts[field.key] : undefined;
    return [field.key, text ?? settings?.yaml[field.key] ?? ''];
  });
  return Object.fromEntries(values) as Values;
}

/** What has to be sent: only what differs from the file, so that nothing else is written anew. */
export function changeOf(fields: Field[], before: Values, after: Values): ProfileChange {
  const change: Required<Omit<ProfileChange, 'type'>> = { texts: {}, yaml: {}, unset: [] };
  for (const field of fields) {
    const value = after[field.key] ?? '';
    const isEmpty = value.trim() === '';
    if (isEmpty && field.isHidden) change.unset.push(field.key);
    if (value === (before[field.key] ?? '')) continue;
    if (isEmpty) change.unset.push(field.key);
    else change[field.kind === 'text' ? 'texts' : 'yaml'][field.key] = value;
  }
  return change;
}

/** The faults of one field; `undefined`: those of none of the fields. */
export function faultsAt(faults: FieldFault[], fields: Field[], key?: string): FieldFault[] {
  if (key !== undefined) return faults.filter((fault) => fault.path[0] === key);
  const known = new Set(fields.map((field) => field.key));
  return faults.filter((fault) => !fault.path[0] || !known.has(fault.path[0]));
}
