"""Parts of a plan's code: replicas of weights by the ZeRO levels, and what lives in the host's memory."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from jupyter_autotrain.parallel.cost.memory import ZeroLevel
from jupyter_autotrain.parallel.plan.caveats import data_axes, split_elsewhere
from jupyter_autotrain.parallel.plan.modules import ModuleSharding, in_model, indices_of, layers_of, matches
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
