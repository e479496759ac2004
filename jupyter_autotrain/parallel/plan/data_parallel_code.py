"""The part of a plan's code that keeps replicas of weights, by the ZeRO levels."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from jupyter_autotrain.parallel.cost.memory import ZeroLevel
from jupyter_autotrain.parallel.plan.caveats import data_axes, split_elsewhere
from jupyter_autotrain.parallel.plan.modules import ModuleSharding
from jupyter_autotrain.parallel.plan.patterns import indices_of, layers_of, matches
from jupyter_autotrain.parallel.plan.plan_data import PlanData

APART = "# Split over an axis of `data` already, or on the host: none of the following reduces their gradients."


def replicas(plan: PlanData, modules: Sequence[ModuleSharding]) -> str:
    """Data parallelism over the axes that split samples or the sequence: DDP, or `fully_shard` layer by layer."""
    shared = data_axes(modules)
    if not shared:
        return ""
    lines = [f"data = {submesh(plan, shared)}"]
    apart = [m for m in modules if m.host_table or split_elsewhere(m, shared)]
    levels = Counter(dict.fromkeys(ZeroLevel, 0))
    for module in modules:
        levels[module.zero] += module.weight
    away = any(module.offload for module in modules)
    if levels[ZeroLevel.GRADIENTS] + levels[ZeroLevel.PARAMETERS] or (away and levels[ZeroLevel.OPTIMIZER]):
        return "\n".join([*lines, *_fully_sharded(modules, apart)])
    if apart:
        lines += [APART, f"apart = [name for name, _ in model.named_parameters() if {matches(apart, modules)}]"]
        lines.append("DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(model, apart)")
    lines.append("model = DistributedDataParallel(model, device_mesh=data)")
    return "\n".join([*lines, *_optimizer(sharded=levels[ZeroLevel.OPTIMIZER] > 0)])


def submesh(plan: PlanData, axes: Sequence[int]) -> str:
    """Some axes of the mesh as one."""
    names = [plan.mesh.axes[a] for a in axes]
    quoted = ", ".join(f'"{name}"' for name in names)
    return f"mesh[{quoted}]" + (f'._flatten("{"_".join(names)}")' if len(names) > 1 else "")


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
        yield f"    fully_shard(model.{container}[i], mesh=data, reshard_after_forward={free}{ignored})"
    yield f"fully_shard(model, mesh=data{ignored})"
