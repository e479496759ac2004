"""What of a plan's code does not run as it stands, and why: said in its first lines, and beside it in the preview."""

from __future__ import annotations

from collections.abc import Sequence

from jupyter_autotrain.parallel.graph.graph import Family, LoopRole, Op, OpGraph, TensorKind
from jupyter_autotrain.parallel.plan.modules import Module, split_over
from jupyter_autotrain.parallel.plan.patterns import patterns
from jupyter_autotrain.parallel.plan.pricing import Pricing, loops_of
from jupyter_autotrain.parallel.plan.record import PlanRecord

_CUTS = ("split", "split_with_sizes", "chunk", "unbind", "unsafe_split", "unsafe_chunk")
_MOST_NAMED = 4


def caveats(pricing: Pricing, modules: Sequence[Module]) -> tuple[str, ...]:
    """Sentences, one for each thing that a person must still do; none where the code runs as it stands.

    What is made of data parallelism, the ZeRO levels and recompute runs. So do splits of weights in `nn.Linear` and
    `nn.Embedding` whose activations are whole between them.
    """
    record = pricing.record
    graph = record.graph
    found = [_stages(record, modules), _sequence(pricing), _apart(record, modules), _odd(modules)]
    found += [_fused(graph, modules), _other_kinds(graph, modules), _shared(graph, modules), _together(record, modules)]
    return tuple(sentence for sentence in found if sentence)


def data_axes(modules: Sequence[Module]) -> tuple[int, ...]:
    """Mesh axes over which some module works on its own samples, or on its own part of the sequence."""
    axes = range(len(modules[0].styles)) if modules else range(0)
    return tuple(axis for axis in axes if any(module.styles[axis] == "data" for module in modules))


def split_elsewhere(module: Module, shared: Sequence[int]) -> bool:
    """Whether a module's weights are split over one of the axes over which others are replicated."""
    axes, style = split_over(module)
    return bool(set(axes) & set(shared)) and "Sequence" not in style


def _stages(record: PlanRecord, modules: Sequence[Module]) -> str:
    if len(record.stages) < 2:
        return ""
    first = [module.path for module in modules if module.layer is None]
    count = len(record.stages)
    return (
        f"Pipeline: the code only says which layers a stage keeps. Write a forward for each of the {count}, "
        f"from activations to activations, with {_named(first)} where they belong."
    )


def _sequence(pricing: Pricing) -> str:
    axes = [
        axis
        for number, axis in enumerate(pricing.record.mesh.axes)
        if any(_role(pricing, op, number) is LoopRole.SEQUENCE for op in pricing.record.graph.ops)
    ]
    if not axes:
        return ""
    return (
        f"Sequence over {_named(axes)}: between layers each rank has a part of the positions. Rotary tables, positions "
        "and masks that the model makes from what it sees, as transformers models do, must be of the whole sequence; "
        "where attention is split so too, run it inside context_parallel."
    )


def _role(pricing: Pricing, op: Op, axis: int) -> LoopRole | None:
    loop = loops_of(op, pricing.strategy(op))[axis]
    return op.loops[loop].role if loop >= 0 else None


def _apart(record: PlanRecord, modules: Sequence[Module]) -> str:
    shared = data_axes(modules)
    found = [module for module in modules if not module.host_table and split_elsewhere(module, shared)]
    if not found:
        return ""
    axes = _named([record.mesh.axes[axis] for axis in shared])
    return (
        f"{_named(_paths(found))}: split over an axis of {axes}, where others average gradients. Combine their "
        "gradients over its other axes, and divide by the number of ranks."
    )


def _odd(modules: Sequence[Module]) -> str:
    found = [module for module in modules if split_over(module)[1] == "other"]
    return f"{_named(_paths(found))}: split them with distribute_tensor, no style of torch does it." if found else ""


def _fused(graph: OpGraph, modules: Sequence[Module]) -> str:
    """Columns of queries, keys and values in one weight."""
    cut = {module.path for module in modules if "Colwise" in split_over(module)[1]}
    fused = {_path(graph, op) for op in graph.ops if _is_cut(graph, op)} & cut
    found = [module for module in modules if module.path in fused]
    if not found:
        return ""
    return (
        f"{_named(_paths(found))}: several projections in one weight. Order its columns so that a rank gets its "
        "share of each."
    )


def _is_cut(graph: OpGraph, op: Op) -> bool:
    readers = [graph.ops[reader] for out in op.outputs for reader in graph.consumers.get(out.tensor, ())]
    names = [member.name for member in op.members] + [name.name for name in readers]
    return any(name.rpartition(".")[2].rstrip("_0123456789") in _CUTS for name in names)


def _other_kinds(graph: OpGraph, modules: Sequence[Module]) -> str:
    """Splits of modules that torch's styles do not know: they take `nn.Linear` and `nn.Embedding`."""
    styled = {module.path for module in modules if split_over(module)[1].startswith(("Colwise", "Rowwise"))}
    strange = {_path(graph, op) for op in graph.ops if not _is_known(op)} & styled
    found = [module for module in modules if module.path in strange]
    if not found:
        return ""
    return f"{_named(_paths(found))}: neither nn.Linear nor nn.Embedding, which alone parallelize_module can split."


def _shared(graph: OpGraph, modules: Sequence[Module]) -> str:
    """Weights that another module uses as well: a split of the one leaves the other with its own copy."""
    styled = {module.path for module in modules if split_over(module)[1].startswith(("Colwise", "Rowwise"))}
    families: dict[str, set[Family]] = {}
    for op in graph.ops:
        families.setdefault(_path(graph, op), set()).add(op.family)
    found = [module for module in modules if module.path in styled and len(families[module.path]) > 1]
    if not found:
        return ""
    return f"{_named(_paths(found))}: another module uses its weight too. Split both alike, and tie them again."


def _is_known(op: Op) -> bool:
    kinds = {op.kind, *(member.name.rpartition(".")[2].rstrip("_0123456789") for member in op.members)}
    return bool(kinds & {"linear", "embedding"})


def _together(record: PlanRecord, modules: Sequence[Module]) -> str:
    """What compares samples with one another is not to be computed on each rank's own."""
    if record.graph.uncut and data_axes(modules):
        return f"Each rank sees its own samples only, which changes the mathematics: {record.graph.uncut}."
    return ""


def _path(graph: OpGraph, op: Op) -> str:
    """The module whose weights an op reads."""
    names = [graph.tensors[x.tensor].name for x in op.inputs if graph.tensors[x.tensor].kind is TensorKind.PARAMETER]
    return names[0].rpartition(".")[0] if names else ""


def _paths(modules: Sequence[Module]) -> list[str]:
    return [path.strip('"') for path, _ in patterns([(module, "") for module in modules], modules)]


def _named(names: Sequence[str]) -> str:
    rest = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {rest} more" if rest > 0 else "")
