/** Operations on places: profiles of backends, what they have, what runs there, checks of them. */

import { request } from './request';

export interface RunningTrial {
  experiment: string;
  name: string;
  trial: number;
  nodes: string[];
}

export interface Place {
  name: string;
  type: string;
  level: 'user' | 'project' | 'type';
  /** The level of a definition of the same name that does not count. */
  hides: '' | 'user' | 'project';
  running: number;
  trials: RunningTrial[];
  faults: string[];
}

export interface Accelerator {
  kind: string | null;
  memory_bytes: number | null;
  busy: boolean;
}

export interface PlaceNode {
  name: string;
  cpus: number | null;
  memory_bytes: number | null;
  accelerators: Accelerator[];
  unavailable: string;
}

export interface Inventory {
  usable: boolean;
  reason: string;
  inventory: { nodes: PlaceNode[] } | null;
}

export interface ProfileFile {
  level: 'user' | 'project';
  path: string;
  exists: boolean;
}

/** The project's file of the folder that the server shows. */
export interface Project {
  /** "" where none counts; then `fault` says why. */
  path: string;
  digest: string;
  is_trusted: boolean;
  /** One line for each place and setting that needs trust. */
  effects: string[];
  fault: string;
}

export interface CheckStep {
  node: string;
  name: string;
  is_good: boolean;
  text: string;
  action: string;
  took_s: number | null;
}

export interface CheckProgress {
  state: 'running' | 'done' | 'cancelled' | 'too long';
  good: boolean;
  steps: CheckStep[];
}

export interface BackendType {
  name: string;
  text: string;
  needs: string[];
}

export interface ProfileSettings {
  type: string;
  /** Each setting as one writes it after its key. */
  yaml: Record<string, string>;
  /** Those that are text, as they are. */
  texts: Record<string, string>;
  /** Keys of what looks like a secret, which the server does not tell. */
  hidden: string[];
  location: string;
  faults: FieldFault[];
}

export interface FieldFault {
  path: string[];
  text: string;
}

export interface ProfileChange {
  type?: string;
  texts: Record<string, string>;
  yaml: Record<string, string>;
  unset?: string[];
}

export interface Saved {
  saved: boolean;
  faults: FieldFault[];
}

const part = encodeURIComponent;

export async function listPlaces(): Promise<{ backends: Place[]; faults: string[] }> {
  return (await request('backends')) as { backends: Place[]; faults: string[] };
}

export async function listProfileFiles(): Promise<{ files: ProfileFile[] }> {
  return (await request('profiles')) as { files: ProfileFile[] };
}

export async function askProject(): Promise<Project> {
  return (await request('project')) as Project;
}

/** Agrees to the project's file as the user has seen it. */
export async function trustProject(digest: string): Promise<void> {
  await request('project', { method: 'POST', body: { digest } });
}

/** Asks the machines of a place, which may take a while. */
export async function askInventory(name: string): Promise<Inventory> {
  return (await request(`backends/${part(name)}/inventory`)) as Inventory;
}

export async function beginCheck(name: string): Promise<string> {
  const answer = await request(`backends/${part(name)}/checks`, { method: 'POST', body: {} });
  return (answer as { check: string }).check;
}

/** The steps of a check after those that are known. */
export async function followCheck(check: string, after: number): Promise<CheckProgress> {
  return (await request(`checks/${part(check)}`, { query: { after } })) as CheckProgress;
}

export async function cancelCheck(check: string): Promise<void> {
  await request(`checks/${part(check)}`, { method: 'DELETE' });
}

export async function listTypes(): Promise<BackendType[]> {
  return ((await request('backend-types')) as { types: BackendType[] }).types;
}

export async function typeSchema(type: string): Promise<object> {
  return ((await request(`backend-types/${part(type)}`)) as { schema: object }).schema;
}

export async function profileSettings(name: string): Promise<ProfileSettings> {
  return (await request(`profiles/${part(name)}`)) as ProfileSettings;
}

export async function addProfile(name: string, change: ProfileChange): Promise<Saved> {
  return (await request('profiles', { method: 'POST', body: { profile: name, ...change } })) as Saved;
}

export async function editProfile(name: string, change: ProfileChange): Promise<Saved> {
  return (await request(`profiles/${part(name)}`, { method: 'PATCH', body: change })) as Saved;
}

export async function removeProfile(name: string): Promise<void> {
  await request(`profiles/${part(name)}`, { method: 'DELETE' });
}
