"""Parts of a plan's code: replicas of weights by the ZeRO levels, and what lives in the host's memory.

Some parts do not run as they stand: that is said in the code's first lines, and beside it in the preview.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from jupyter_autotrain.parallel.choices import Support, beyond, choices_in
from jupyter_autotrain.parallel.cost.memory import ZeroLevel
from jupyter_autotrain.parallel.plan.decision_costs import DecisionCosts
from jupyter_autotrain.parallel.plan.modules import ModuleSharding, in_model, indices_of, layers_of, matches, patterns
from jupyter_autotrain.parallel.plan.plan_data import PlanData
from jupyter_autotrain.parallel.tensor_axis import tensor_axis

APART = "# Split over an axis of `data` already, or on the host: none of the following reduces their gradients."


def replicas(plan: PlanData, modules: Sequence[ModuleSharding]) -> str:
    """Get data parallelism over the axes that split samples or the sequence: DDP, or `fully_shard` layer by layer."""
    shared = data_axes(plan.decision_costs(), modules)
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


_STAGES: Final = ("pipeline stages", "GPipe", "1F1B", "interleaved 1F1B")
_WRITTEN: Final = frozenset((*_STAGES, "several ZeRO levels", "optimizer on the host", "table on the host"))
"""Choices that are not executed, and that the code has all the same."""
_MOST_NAMED: Final = 4


def caveats(costs: DecisionCosts, modules: Sequence[ModuleSharding]) -> tuple[str, ...]:
    """Sentences, one for each thing that is still to be done by hand; none where the code runs as it stands."""
    if not beyond(costs.graph, costs.decision):
        return ()
    found = [_stages(len(costs.decision.stages), modules), _apart(costs, modules), *_unwritten(costs)]
    return tuple(filter(None, found))


def data_axes(costs: DecisionCosts, modules: Sequence[ModuleSharding]) -> tuple[int, ...]:
    """Mesh axes over which some module works on its own samples, or on its own part of the sequence."""
    shared = tensor_axis(costs.graph, costs.decision)
    used = {axis for module in modules for axis in module.own}
    return tuple(sorted(used - {shared}))


def split_elsewhere(module: ModuleSharding, shared: Sequence[int]) -> bool:
    """Return whether a module's weights are split over one of the axes over which others are replicated."""
    return not set(module.split).isdisjoint(shared)


def _unwritten(costs: DecisionCosts) -> Iterator[str]:
    for choice, words in choices_in(costs.graph, costs.decision):
        if choice.support is not Support.EXECUTED and choice.name not in _WRITTEN:
            yield f"{words[0].upper()}{words[1:]}: not written here; plan.strategies says what each op does."


def _stages(count: int, modules: Sequence[ModuleSharding]) -> str:
    if count < 2:
        return ""
    first = [module.path for module in modules if module.layer is None]
    return (
        f"Pipeline: the code only says which layers a stage keeps. Write a forward for each of the {count}, "
        f"from activations to activations, with {_named(first)} where they belong."
    )


def _apart(costs: DecisionCosts, modules: Sequence[ModuleSharding]) -> str:
    shared = data_axes(costs, modules)
    found = [module for module in modules if not module.host_table and split_elsewhere(module, shared)]
    if not found:
        return ""
    axes = _named([costs.decision.mesh.axes[axis] for axis in shared])
    return (
        f"{_named(list(patterns(found, modules)))}: split over an axis of {axes}, where others average gradients. "
        "Combine their gradients over its other axes, and divide by the number of ranks."
    )


def _named(names: Sequence[str]) -> str:
    rest = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {rest} more" if rest > 0 else "")
