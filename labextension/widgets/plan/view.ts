/** The plan as it comes from Python; the keys are described in `jupyter_autotrain/parallel/plan/view.py`. */

export interface LayoutChange {
  axis: number;
  what: string;
  sent_bytes: number;
  times: number;
}

export interface GraphNode {
  id: number;
  op: string;
  label: string;
  family: string;
  kind: string;
  group: number;
  count: number;
  stages: number[];
  colour: string;
  split: (string | null)[];
  zero: number;
  offload: boolean;
  host_table: boolean;
  recompute: string;
  flops: number;
  parameters: number;
  syncs: LayoutChange[];
  tensors: number[];
}

export interface GraphEdge {
  source: number;
  target: number;
  tensor: number;
  repeats: boolean;
  bytes: number;
  forward: LayoutChange[];
  backward: LayoutChange[];
}

export interface Split {
  axis: number;
  dim: number;
  parts: number;
}

export interface Tensor {
  id: number;
  name: string;
  shape: number[];
  local_shape: number[];
  dtype: string;
  kind: string;
  placements: string[];
  splits: Split[];
}

export interface Mesh {
  axes: string[];
  shape: number[];
  stages: number;
}

export interface Cost {
  step_s: number;
  compute_s: number;
  communication_s: number;
  bubble_s: number;
  optimizer_s: number;
  peak_memory_bytes: number;
  /** By a rank in a step, of the stage that sends most. */
  sent_bytes: number | null;
}

/** Times are null where a plan does not fit or does not apply. */
export type Candidate = { [K in keyof Cost]: number | null } & {
  name: string;
  kind: string;
  what: string;
  fits: boolean;
  reason: string;
};

export interface Segment {
  stage: number;
  start_s: number;
  stop_s: number;
  what: string;
  microbatch: number;
}

export interface Rank {
  stage: number;
  device: string;
  ranks: number;
  blocks: number;
  parameter_bytes: number;
  gradient_bytes: number;
  optimizer_bytes: number;
  activation_bytes: number;
  peak_bytes: number;
  limit_bytes: number;
  sent_bytes: Record<string, number>;
}

export interface Level {
  name: string;
  size: number;
  bytes_per_s: number;
}

export interface View {
  name: string;
  /** The answer in one line; plans kept by older versions have none. */
  plan?: string;
  search: string;
  complete: boolean;
  /** null where nothing is proved. */
  gap: number | null;
  search_s: number;
  trace_s: number;
  limit_bytes: number;
  unknown: string[];
  /** Kind of op without a rule → its share of the work. */
  unsupported_work: Record<string, number>;
  notes: string[];
  /** Why the code does not run as it stands; none where it does. */
  caveats: string[];
  cluster: {
    name: string;
    devices: number;
    device: string;
    memory_bytes: number;
    usable_bytes: number;
    levels: Level[];
  };
  mesh: Mesh;
  microbatches: number;
  /** Empty without stages. */
  schedule: string;
  /** null where the graph does not tell; plans kept by older versions have none. */
  inputs?: { batch: number | null; sequence: number | null };
  recompute: Record<string, number>;
  zero: Record<string, number>;
  cost: Cost;
  candidates: Candidate[];
  groups: { label: string; count: number }[];
  nodes: GraphNode[];
  edges: GraphEdge[];
  tensors: Tensor[];
  timeline: { step_s: number; segments: Segment[] };
  ranks: Rank[];
  code: string;
}
