"""Parts of a plan's code: replicas of weights by the ZeRO levels, and what lives in the host's memory.

Some parts do not run as they stand: that is said in the code's first lines, and beside it in the preview.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from jupyter_autotrain.parallel.cost.memory import ZeroLevel
from jupyter_autotrain.parallel.graph.graph import Family, LoopRole, Op, OpGraph, TensorKind
from jupyter_autotrain.parallel.plan.decision_costs import DecisionCosts
from jupyter_autotrain.parallel.plan.modules import (
    ModuleSharding,
    in_model,
    indices_of,
    layers_of,
    matches,
    patterns,
    split_over,
)
from jupyter_autotrain.parallel.plan.plan_data import PlanData

APART = "# Split over an axis of `data` already, or on the host: none of the following reduces their gradients."


def replicas(plan: PlanData, modules: Sequence[ModuleSharding]) -> str:
    """Get data parallelism over the axes that split samples or the sequence: DDP, or `fully_shard` layer by layer."""
    shared = data_axes(modules)
    if not shared:
        return ""
    hybrid = any(decided.states.inner for decided in plan.strategies.values())
    lines = [f"data = {submesh(plan, shared, flat=not hybrid)}"]
    apart = [m for m in modules if m.host_table or split_elsewhere(m, shared)]
    levels = {module.zero for module in modules}
    away = any(module.offload for module in modules)
    if max(levels) > ZeroLevel.OPTIMIZER or (away and ZeroLevel.OPTIMIZER in levels):
        return "\n".join([*lines, *_fully_sharded(modules, apart)])
    return "\n".join([*lines, *_replicated(modules, apart), *_optimizer(sharded=ZeroLevel.OPTIMIZER in levels)])


def _replicated(modules: Sequence[ModuleSharding], apart: Sequence[ModuleSharding]) -> Iterator[str]:
    if apart:
        yield APART
        yield f"apart = [name for name, _ in model.named_parameters() if {matches(apart, modules)}]"
        yield "DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(model, apart)"
    yield "model = DistributedDataParallel(model, device_mesh=data)"


def submesh(plan: PlanData, axes: Sequence[int], *, flat: bool = True) -> str:
    """Return some axes of the mesh, as one where `flat`; else outer ones hold replicas of what the last shares out."""
    unique = plan.mesh.unique_axes()
    names = [unique[a] for a in axes]
    quoted = ", ".join(f'"{name}"' for name in names)
    return f"mesh[{quoted}]" + (f'._flatten("{"_".join(names)}")' if flat and len(names) > 1 else "")


def _optimizer(*, sharded: bool) -> list[str]:
    if not sharded:
        return []
    return [
        "optimizer = ZeroRedundancyOptimizer(",
        "    model.parameters(), torch.optim.AdamW, process_group=data.get_group(), lr=3e-4",
        ")",
    ]


def _fully_sharded(modules: Sequence[ModuleSharding], apart: Sequence[ModuleSharding]) -> Iterator[str]:
    """`fully_shard` layer by layer: parameters are freed after the forward pass where the level is ZeRO-3."""
    by_choice: dict[tuple[str, bool], list[int]] = defaultdict(list)
    for (container, index), inside in layers_of(modules).items():
        weights: Counter[bool] = Counter()
        for module in inside:
            weights[module.zero is ZeroLevel.PARAMETERS] += module.weight
        by_choice[container, weights[True] >= weights[False]].append(index)
    ignored = ""
    if apart:
        yield APART
        yield f"apart = {{p for name, p in model.named_parameters() if {matches(apart, modules)}}}"
        ignored = ", ignored_params=apart"
    for (container, free), indices in by_choice.items():
        yield f"for i in {indices_of(indices)}:"
        yield f"    fully_shard({in_model(container)}[i], mesh=data, reshard_after_forward={free}{ignored})"
    yield f"fully_shard(model, mesh=data{ignored})"


def tables(modules: Sequence[ModuleSharding]) -> str:
    """Embeddings on the host: indices go there, looked-up rows come back, their optimizer works there."""
    paths = [module.path for module in modules if module.host_table]
    if not paths:
        return ""
    return "\n".join(
        [
            "# These tables stay on the host, with their optimizer; only looked-up rows come to the device.",
            f"tables = [{', '.join(f'model.{path}' for path in paths)}]",
            "for table in tables:",
            '    table.to("cpu").sparse = True',
            '    table.register_forward_pre_hook(lambda table, ids: (ids[0].to("cpu"),))',
            '    table.register_forward_hook(lambda table, ids, rows: rows.to("cuda"))',
            "tables_optimizer = torch.optim.SparseAdam([table.weight for table in tables], lr=3e-4)",
        ]
    )


def offloaded(modules: Sequence[ModuleSharding]) -> str:
    """Return an optimizer whose states and update are on the host, for the modules that want it."""
    away = [module for module in modules if module.offload]
    if not away:
        return ""
    every = len(away) == len(modules)
    which = "model.parameters()"
    if not every:
        which = f"[p for name, p in model.named_parameters() if {matches(away, modules)}]"
    return (
        "# The states of these weights stay on the host, and are updated there.\n"
        f"optimizer = CPUOffloadOptimizer({which}, torch.optim.AdamW, lr=3e-4)"
    )


_CUTS = frozenset(("split", "split_with_sizes", "chunk", "unbind", "unsafe_split", "unsafe_chunk"))
_MOST_NAMED = 4


def caveats(costs: DecisionCosts, modules: Sequence[ModuleSharding]) -> tuple[str, ...]:
    """Sentences, one for each thing that is still to be done by hand; none where the code runs as it stands.

    What is made of data parallelism, the ZeRO levels and recompute runs. So do splits of weights in `nn.Linear` and
    `nn.Embedding` whose activations are whole between them.
    """
    graph = costs.graph
    axes = costs.decision.mesh.axes
    found = [_stages(len(costs.decision.stages), modules), _sequence(costs), _apart(axes, modules), _odd(modules)]
    found += [_fused(graph, modules), _other_kinds(graph, modules), _shared(graph, modules), _together(graph, modules)]
    return tuple(sentence for sentence in found if sentence)


def data_axes(modules: Sequence[ModuleSharding]) -> tuple[int, ...]:
    """Mesh axes over which some module works on its own samples, or on its own part of the sequence."""
    columns = zip(*(module.styles for module in modules), strict=True)
    return tuple(axis for axis, styles in enumerate(columns) if "data" in styles)


def split_elsewhere(module: ModuleSharding, shared: Sequence[int]) -> bool:
    """Return whether a module's weights are split over one of the axes over which others are replicated."""
    axes, style = split_over(module)
    return bool(set(axes) & set(shared)) and "Sequence" not in style


def _stages(count: int, modules: Sequence[ModuleSharding]) -> str:
    if count < 2:
        return ""
    first = [module.path for module in modules if module.layer is None]
    return (
        f"Pipeline: the code only says which layers a stage keeps. Write a forward for each of the {count}, "
        f"from activations to activations, with {_named(first)} where they belong."
    )


def _sequence(costs: DecisionCosts) -> str:
    split = set[int]()
    for op in costs.graph.ops:
        loops = costs.op_decision(op).split_loops(op)
        split.update(axis for axis, loop in enumerate(loops) if loop and loop.role is LoopRole.SEQUENCE)
    if not split:
        return ""
    axes = list(dict.fromkeys(costs.decision.mesh.axes[axis] for axis in sorted(split)))
    return (
        f"Sequence over {_named(axes)}: between layers each rank has a part of the positions. Rotary tables, positions "
        "and masks that the model makes from what it sees, as transformers models do, must be of the whole sequence; "
        "where attention is split so too, run it inside context_parallel."
    )


def _apart(mesh_axes: Sequence[str], modules: Sequence[ModuleSharding]) -> str:
    shared = data_axes(modules)
    found = [module for module in modules if not module.host_table and split_elsewhere(module, shared)]
    axes = _named(list(dict.fromkeys(mesh_axes[axis] for axis in shared)))
    return _said(
        found,
        f"split over an axis of {axes}, where others average gradients. Combine their gradients over its other axes, "
        "and divide by the number of ranks.",
    )


def _odd(modules: Sequence[ModuleSharding]) -> str:
    found = [module for module in modules if split_over(module)[1] == "other"]
    return _said(found, "split them with distribute_tensor, no style of torch does it.")


def _fused(graph: OpGraph, modules: Sequence[ModuleSharding]) -> str:
    """Columns of queries, keys and values in one weight."""
    cut = [module for module in modules if "Colwise" in split_over(module)[1]]
    fused = {_path(graph, op) for op in graph.ops if _is_cut(graph, op)}
    return _said(
        [module for module in cut if module.path in fused],
        "several projections in one weight. Order its columns so that a rank gets its share of each.",
    )


def _is_cut(graph: OpGraph, op: Op) -> bool:
    names = [member.name for member in op.members]
    names += [graph.ops[reader].name for reader in graph.readers(op)]
    return not _CUTS.isdisjoint(map(_short_name, names))


def _short_name(name: str) -> str:
    """Return the last part of an op's name without the number that makes it unique."""
    return name.rpartition(".")[2].rstrip("_0123456789")


def _other_kinds(graph: OpGraph, modules: Sequence[ModuleSharding]) -> str:
    """Return splits of modules that torch's styles do not support: they take `nn.Linear` and `nn.Embedding`."""
    strange = {_path(graph, op) for op in graph.ops if not _is_known(op)}
    return _said(
        [module for module in _with_split_weights(modules) if module.path in strange],
        "neither nn.Linear nor nn.Embedding, which alone parallelize_module can split.",
    )


def _shared(graph: OpGraph, modules: Sequence[ModuleSharding]) -> str:
    """Weights that another module uses as well: a split of the one leaves the other with its own copy."""
    families: dict[str, set[Family]] = {}
    for op in graph.ops:
        families.setdefault(_path(graph, op), set()).add(op.family)
    return _said(
        [module for module in _with_split_weights(modules) if len(families.get(module.path, ())) > 1],
        "another module uses its weight too. Split both alike, and tie them again.",
    )


def _with_split_weights(modules: Sequence[ModuleSharding]) -> list[ModuleSharding]:
    return [module for module in modules if split_over(module)[1].startswith(("Colwise", "Rowwise"))]


def _is_known(op: Op) -> bool:
    kinds = {op.kind, *(_short_name(member.name) for member in op.members)}
    return bool(kinds & {"linear", "embedding"})


def _together(graph: OpGraph, modules: Sequence[ModuleSharding]) -> str:
    """Return a caveat where something compares samples with one another, which is not to be done on each rank's own."""
    if graph.unsplittable_reason and data_axes(modules):
        return f"Each rank sees its own samples only, which changes the mathematics: {graph.unsplittable_reason}."
    return ""


def _path(graph: OpGraph, op: Op) -> str:
    """Return the module whose weights an op reads."""
    names = [graph.tensors[x.tensor].name for x in op.inputs if graph.tensors[x.tensor].kind is TensorKind.PARAMETER]
    return names[0].rpartition(".")[0] if names else ""


def _said(modules: Sequence[ModuleSharding], what: str) -> str:
    """Return a sentence about some modules; none about none."""
    unstyled = [(module, "") for module in modules]
    paths = [path.strip('"') for path, _ in patterns(unstyled, modules)]
    return f"{_named(paths)}: {what}" if paths else ""


def _named(names: Sequence[str]) -> str:
    rest = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {rest} more" if rest > 0 else "")
