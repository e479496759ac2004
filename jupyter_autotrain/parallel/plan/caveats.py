"""Parts of a plan's code that do not run as they stand, and why: in its first lines, and beside it in the preview."""

from __future__ import annotations

from collections.abc import Sequence

from jupyter_autotrain.parallel.graph.graph import Family, LoopRole, Op, OpGraph, TensorKind
from jupyter_autotrain.parallel.plan.decision_costs import DecisionCosts
from jupyter_autotrain.parallel.plan.modules import ModuleSharding, patterns, split_over

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
