"""A plan as torch code."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import TypeVar

from jupyter_autotrain.agent.sizes import format_memory
from jupyter_autotrain.parallel.choices import is_batch_norm
from jupyter_autotrain.parallel.cost.memory import Recompute, Schedule
from jupyter_autotrain.parallel.plan.code_parts import caveats, offloaded, replicas, submesh, tables
from jupyter_autotrain.parallel.plan.formatting import ms
from jupyter_autotrain.parallel.plan.modules import (
    STYLES,
    ModuleSharding,
    in_model,
    indices_of,
    layers_of,
    modules_of,
    patterns,
    split_over,
)
from jupyter_autotrain.parallel.plan.plan_data import PlanData
from jupyter_autotrain.parallel.plan.recipe_code import recipe_code
from jupyter_autotrain.parallel.plan.recipes import recipe_of

Value = TypeVar("Value", int, Recompute)

_SCHEDULES = {
    Schedule.GPIPE: "ScheduleGPipe",
    Schedule.ONE_F_ONE_B: "Schedule1F1B",
    Schedule.INTERLEAVED: "ScheduleInterleaved1F1B",
}


def code(plan: PlanData) -> str:
    """Return the recipe of a plan that runs, written out; else calls of torch by module, which expect `model`."""
    costs = plan.decision_costs()
    if not plan.beyond:
        recipe = recipe_of(costs)
        if recipe.tensor is None and recipe.pipeline is None:
            statistics = any(map(is_batch_norm, plan.graph.ops))
            return recipe_code(recipe, [_title(plan)], batch_statistics=statistics)
    modules = modules_of(costs)
    here = [module for module in modules if not module.host_table]
    parts = [_mesh(plan), _settings(plan), tables(modules), _tensor(plan, here), _recompute(modules)]
    parts += [_stage_cut(plan, modules), replicas(plan, modules), offloaded(here), _pipeline(plan), _loss(here)]
    body = "\n\n".join(part for part in parts if part)
    return f"{_head(plan, caveats(costs, modules))}\n{_imports(body)}\n{body}\n"


def _title(plan: PlanData) -> str:
    memory = format_memory(plan.cost.peak_memory_bytes)
    return f"{plan.name} on {plan.cluster}: {plan.solution.name}; {ms(plan.cost.step_s)} and {memory} per rank."


def _head(plan: PlanData, missing: Sequence[str]) -> str:
    processes = plan.mesh.devices * len(plan.stages)
    lines = [_title(plan)]
    if missing:
        lines += ["Does not run as it stands:", *(f"- {sentence}" for sentence in missing)]
    lines.append(f"`model` is the whole model, on its process's device; start {processes} processes with torchrun.")
    return "\n".join(f"# {line}" for line in lines)


def _loss(modules: Sequence[ModuleSharding]) -> str:
    """Where logits stay split by vocabulary, the loss is computed on the parts."""
    if not any("use_local_output=False" in style for module in modules for style in module.styles):
        return ""
    return (
        "# The cross entropy meets logits that are split by vocabulary:\n"
        "step = loss_parallel  # run forward and backward inside `with step():`"
    )


def _settings(plan: PlanData) -> str:
    """Switches of the model that the plan takes to be off."""
    lines = []
    if plan.graph.meta.get("cache"):
        lines.append("model.config.use_cache = False  # recompute would add past keys twice")
    if plan.graph.meta.get("note"):
        lines += ['if hasattr(model, "gradient_checkpointing_disable"):', "    model.gradient_checkpointing_disable()"]
    return "\n".join(lines)


_IMPORTS = (
    ("import fnmatch", ("fnmatch.",)),
    ("import functools", ("functools.",)),
    ("import torch", ("torch.",)),
    (
        "from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper",
        ("checkpoint_wrapper(",),
    ),
    ("from torch.distributed.device_mesh import init_device_mesh", ("init_device_mesh(",)),
    ("from torch.distributed.fsdp import fully_shard", ("fully_shard(",)),
    ("from torch.distributed.optim import ZeroRedundancyOptimizer", ("ZeroRedundancyOptimizer(",)),
    ("from torch.distributed.pipelining import PipelineStage, {names}", tuple(_SCHEDULES.values())),
    ("from torch.distributed.tensor import {names}", ("Replicate", "Shard")),
    ("from torch.distributed.tensor.parallel import {names}", (*STYLES, "loss_parallel", "parallelize_module")),
    ("from torch.nn.parallel import DistributedDataParallel", ("DistributedDataParallel(",)),
    ("from torchao.optim import CPUOffloadOptimizer", ("CPUOffloadOptimizer(",)),
    (
        "from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts",
        ("create_selective_checkpoint_contexts",),
    ),
)  # fmt: skip


def _imports(body: str) -> str:
    """Return the import lines that the code needs."""
    found = []
    for line, names in _IMPORTS:
        used = [name for name in names if re.search(rf"\b{name}\b" if "{names}" in line else re.escape(name), body)]
        if used:
            found.append(line.format(names=", ".join(used)))
    return "\n".join(found) + "\n"


def _mesh(plan: PlanData) -> str:
    names = list(plan.mesh.unique_axes())
    shape = list(plan.mesh.shape)
    if len(plan.stages) > 1:
        names.insert(0, "pipeline")
        shape.insert(0, len(plan.stages))
    if not shape:
        return "# One device: nothing to split."
    quoted = tuple(f'"{name}"' for name in names)
    return f'mesh = init_device_mesh("cuda", {_tuple(map(str, shape))}, mesh_dim_names={_tuple(quoted)})'


def _tuple(items: Iterable[str]) -> str:
    """Expressions as a tuple, one with the comma that it needs."""
    found = list(items)
    return f"({', '.join(found)}{',' if len(found) == 1 else ''})"


def _tensor(plan: PlanData, modules: Sequence[ModuleSharding]) -> str:
    """`parallelize_module` for each set of axes that splits weights, layers of equal treatment on one line."""
    by_axes: dict[tuple[int, ...], list[tuple[ModuleSharding, str]]] = defaultdict(list)
    odd = []
    for module in modules:
        axes, style = split_over(module)
        if style == "other":
            odd.append(module.path)
        elif axes:
            by_axes[axes].append((module, style))
    parts = []
    for axes, styled in by_axes.items():
        if all(style == "SequenceParallel()" for _, style in styled):
            continue
        entries = [f"    {path}: {style}," for path, style in patterns(styled, modules)]
        parts.append("\n".join([_LOCAL, f"parallelize_module(model, {submesh(plan, axes)}, {{", *entries, "})"]))
    parts += [f"# {path}: split its weights with distribute_tensor, as plan.strategies says" for path in odd]
    return "\n\n".join(parts)


_LOCAL = "# Between these modules sizes are local: no view may write out the number of all heads."


def _recompute(modules: Sequence[ModuleSharding]) -> str:
    """Checkpoint wrappers around the layers that recompute."""
    by_mode: dict[tuple[str, Recompute], list[int]] = defaultdict(list)
    for (container, index), inside in layers_of(modules).items():
        mode = _most_common([m.recompute for m in inside])
        if mode is not Recompute.NONE:
            by_mode[container, mode].append(index)
    parts = [_wrapped(container, mode, indices) for (container, mode), indices in by_mode.items()]
    if any(mode is Recompute.SELECTIVE for _, mode in by_mode):
        parts.insert(0, _POLICY)
    return "\n\n".join(parts)


_POLICY = """attention = {
    torch.ops.aten._scaled_dot_product_flash_attention.default,
    torch.ops.aten._scaled_dot_product_efficient_attention.default,
    torch.ops.aten._scaled_dot_product_cudnn_attention.default,
}


def keep_all_but_attention(context, op, *args, **kwargs):
    return CheckpointPolicy.PREFER_RECOMPUTE if op in attention else CheckpointPolicy.MUST_SAVE


selective = functools.partial(create_selective_checkpoint_contexts, keep_all_but_attention)"""


def _wrapped(container: str, mode: Recompute, indices: Sequence[int]) -> str:
    argument = ", context_fn=selective" if mode is Recompute.SELECTIVE else ""
    layer = f"{in_model(container)}[i]"
    return f"for i in {indices_of(indices)}:\n    {layer} = checkpoint_wrapper({layer}{argument})"


def _stage_cut(plan: PlanData, modules: Sequence[ModuleSharding]) -> str:
    """Each rank keeps the layers of its stage."""
    if len(plan.stages) < 2:
        return ""
    held: dict[str, list[list[int]]] = {}
    for (container, index), inside in layers_of(modules).items():
        by_stage = held.setdefault(container, [[] for _ in plan.stages])
        by_stage[_most_common([m.stage for m in inside])].append(index)
    lines = ['stage = mesh["pipeline"].get_local_rank()']
    for container, by_stage in held.items():
        table = ", ".join(map(indices_of, by_stage))
        lines += [
            f"layers = [{table}]",
            f"for i in range(len({in_model(container)})):",
            "    if i not in layers[stage]:",
            f"        {in_model(container)}[i] = torch.nn.Identity()",
        ]
    for number, what in ((0, "before"), (len(plan.stages) - 1, "after")):
        first = {m.path for m in modules if m.layer is None and m.stage == number}
        if first:
            lines.append(f"# only stage {number} keeps what comes {what} the layers: {', '.join(sorted(first))}")
    return "\n".join(lines)


def _most_common(values: Sequence[Value]) -> Value:
    return Counter(values).most_common(1)[0][0]


def _pipeline(plan: PlanData) -> str:
    count = len(plan.stages)
    if count < 2:
        return _accumulation(plan)
    return (
        f'part = PipelineStage(model, stage, {count}, torch.device("cuda"), group=mesh["pipeline"].get_group())\n'
        f"schedule = {_SCHEDULES[plan.schedule]}({'[part]' if plan.decision.chunks > 1 else 'part'}, "
        f"n_microbatches={plan.microbatches}, loss_fn=loss_fn)"
        + (f"  # {plan.decision.chunks} chunks of layers per rank" if plan.decision.chunks > 1 else "")
    )


def _accumulation(plan: PlanData) -> str:
    if plan.microbatches < 2:
        return ""
    return f"# Accumulate gradients over {plan.microbatches} microbatches before each optimizer step."
