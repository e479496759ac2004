"""A plan as the torch calls that a person would write for it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from jupyter_autotrain.parallel.cost.memory import Recompute, Schedule, Zero
from jupyter_autotrain.parallel.plan.hosting import offloaded, tables
from jupyter_autotrain.parallel.plan.modules import Module, modules_of
from jupyter_autotrain.parallel.plan.patterns import indices_of, layers_of, matches, patterns
from jupyter_autotrain.parallel.plan.pricing import Pricing
from jupyter_autotrain.parallel.plan.record import PlanRecord
from jupyter_autotrain.parallel.plan.units import gigabytes, ms

_SCHEDULES = {
    Schedule.GPIPE: "ScheduleGPipe",
    Schedule.ONE_F_ONE_B: "Schedule1F1B",
    Schedule.INTERLEAVED: "ScheduleInterleaved1F1B",
}
_STYLES = ("ColwiseParallel", "RowwiseParallel", "SequenceParallel")


def code(record: PlanRecord) -> str:
    """Python text: mesh, stages, parallelize_module, checkpoint wrapper, fully_shard, optimizer; expects `model`."""
    modules = modules_of(Pricing(record))
    here = [module for module in modules if not module.host_table]
    parts = [_mesh(record), tables(modules), _tensor(record, here), _recompute(modules), _stage_cut(record, modules)]
    parts += [_data(record, modules), offloaded(here), _pipeline(record)]
    body = "\n\n".join(part for part in parts if part)
    return f"{_head(record)}\n{_imports(body)}\n{body}\n"


def _head(record: PlanRecord) -> str:
    cost = record.cost
    return (
        f"# {record.name} on {record.cluster}: {ms(cost.step_s)} and {gigabytes(cost.peak_memory_bytes)} per rank.\n"
        "# `model` is the whole model; start one process per device with torchrun."
    )


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
    ("from torch.distributed.tensor.parallel import {names}", (*_STYLES, "parallelize_module")),
    ("from torch.nn.parallel import DistributedDataParallel", ("DistributedDataParallel(",)),
    ("from torchao.optim import CPUOffloadOptimizer", ("CPUOffloadOptimizer(",)),
    (
        "from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts",
        ("create_selective_checkpoint_contexts",),
    ),
)  # fmt: skip


def _imports(body: str) -> str:
    """The import lines that the code needs."""
    found = []
    for line, names in _IMPORTS:
        used = [name for name in names if (f"{name}(" if "{names}" in line else name) in body]
        if used:
            found.append(line.format(names=", ".join(used)))
    return "\n".join(found) + "\n"


def _mesh(record: PlanRecord) -> str:
    names, shape = list(record.mesh.axes), list(record.mesh.shape)
    if len(record.stages) > 1:
        names, shape = ["stage", *names], [len(record.stages), *shape]
    if not shape:
        return "# One device: nothing to split."
    sizes, words = (f"({', '.join(map(str, items))},)" for items in (shape, [f'"{n}"' for n in names]))
    tidy = (text.replace(",)", ")") if len(shape) > 1 else text for text in (sizes, words))
    sizes, words = tidy
    return f'mesh = init_device_mesh("cuda", {sizes}, mesh_dim_names={words})'


def _tensor(record: PlanRecord, modules: Sequence[Module]) -> str:
    """`parallelize_module` for each set of axes that splits weights, layers of equal treatment on one line."""
    by_axes: dict[tuple[int, ...], list[tuple[Module, str]]] = defaultdict(list)
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
        entries = [f"    {path}: {style}," for path, style in patterns(styled)]
        parts.append("\n".join([f"parallelize_module(model, {_submesh(record, axes)}, {{", *entries, "})"]))
    parts += [f"# {path}: split its weights with distribute_tensor, as plan.strategies says" for path in odd]
    return "\n\n".join(parts)


def split_over(module: Module) -> tuple[tuple[int, ...], str]:
    """The axes over which a module's weights (or a norm's sequence) are split, and the one style for all of them."""
    axes = tuple(a for a, style in enumerate(module.styles) if style.startswith(_STYLES) or style == "other")
    styles = {module.styles[a].split("(")[0] for a in axes}
    if len(styles) > 1:
        return axes, "other"
    return axes, module.styles[axes[-1]] if axes else ""


def _submesh(record: PlanRecord, axes: Sequence[int]) -> str:
    names = [record.mesh.axes[a] for a in axes]
    quoted = ", ".join(f'"{name}"' for name in names)
    return f"mesh[{quoted}]" + (f'._flatten("{"_".join(names)}")' if len(names) > 1 else "")


def _recompute(modules: Sequence[Module]) -> str:
    """Checkpoint wrappers around the layers that recompute."""
    by_mode: dict[tuple[str, Recompute], list[int]] = defaultdict(list)
    for (container, index), inside in layers_of(modules).items():
        mode = Counter(m.recompute for m in inside).most_common(1)[0][0]
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
    layer = f"model.{container}[i]"
    return f"for i in {indices_of(indices)}:\n    {layer} = checkpoint_wrapper({layer}{argument})"


def _data(record: PlanRecord, modules: Sequence[Module]) -> str:
    """Replicas of weights over the axes that split samples or the sequence, by the ZeRO levels."""
    shared = tuple(a for a in range(len(record.mesh.axes)) if any(m.styles[a] == "data" for m in modules))
    if not shared:
        return ""
    lines = [f"data = {_submesh(record, shared)}"]
    lines += [
        f'# Each rank of mesh["{name}"] takes its slice of the sequence: run the step inside context_parallel.'
        for name in (record.mesh.axes[a] for a in shared)
        if name.startswith("sequence")
    ]
    apart = [m for m in modules if m.host_table or _is_split_over(m, shared)]
    levels = Counter(dict.fromkeys(Zero, 0))
    for module in modules:
        levels[module.zero] += module.weight
    away = any(module.offload for module in modules)
    if levels[Zero.GRADIENTS] + levels[Zero.PARAMETERS] or (away and levels[Zero.OPTIMIZER]):
        return "\n".join([*lines, *_fully_sharded(modules, apart)])
    if apart:
        lines += [_APART, f"apart = [name for name, _ in model.named_parameters() if {matches(apart)}]"]
        lines.append("DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(model, apart)")
    lines.append("model = DistributedDataParallel(model, device_mesh=data)")
    return "\n".join([*lines, *_optimizer(sharded=levels[Zero.OPTIMIZER] > 0)])


def _is_split_over(module: Module, shared: Sequence[int]) -> bool:
    axes, style = split_over(module)
    return bool(set(axes) & set(shared)) and "Sequence" not in style


_APART = "# Split over an axis of `data` already, or on the host: all-reduce their gradients over the (other) axes."


def _optimizer(*, sharded: bool) -> list[str]:
    if not sharded:
        return []
    return [
        "optimizer = ZeroRedundancyOptimizer(",
        "    model.parameters(), torch.optim.AdamW, process_group=data.get_group(), lr=3e-4",
        ")",
    ]


def _fully_sharded(modules: Sequence[Module], apart: Sequence[Module]) -> Iterator[str]:
    """`fully_shard` layer by layer: parameters are freed after the forward pass where the level is ZeRO-3."""
    by_choice: dict[tuple[str, bool], list[int]] = defaultdict(list)
    for (container, index), inside in layers_of(modules).items():
        weights: Counter[bool] = Counter()
        for module in inside:
            weights[module.zero is Zero.PARAMETERS] += module.weight
        by_choice[container, weights[True] >= weights[False]].append(index)
    ignored = ""
    if apart:
        yield _APART
        yield f"apart = {{p for name, p in model.named_parameters() if {matches(apart)}}}"
        ignored = ", ignored_params=apart"
    for (container, free), indices in by_choice.items():
        yield f"for i in {indices_of(indices)}:"
        yield f"    fully_shard(model.{container}[i], mesh=data, reshard_after_forward={free}{ignored})"
    yield f"fully_shard(model, mesh=data{ignored})"


def _stage_cut(record: PlanRecord, modules: Sequence[Module]) -> str:
    """Each rank keeps the layers of its stage."""
    if len(record.stages) < 2:
        return ""
    held: dict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for (container, index), inside in layers_of(modules).items():
        held[container][Counter(m.stage for m in inside).most_common(1)[0][0]].append(index)
    lines = ['stage = mesh["stage"].get_local_rank()']
    for container, by_stage in held.items():
        table = ", ".join(indices_of(by_stage.get(i, [])) for i in range(len(record.stages)))
        lines += [
            f"layers = [{table}]",
            f"for i in range(len(model.{container})):",
            "    if i not in layers[stage]:",
            f"        model.{container}[i] = torch.nn.Identity()",
        ]
    for number, what in ((0, "before"), (len(record.stages) - 1, "after")):
        first = {m.path for m in modules if m.layer is None and m.stage == number}
        if first:
            lines.append(f"# only stage {number} keeps what comes {what} the layers: {', '.join(sorted(first))}")
    return "\n".join(lines)


def _pipeline(record: PlanRecord) -> str:
    count = len(record.stages)
    if count < 2:
        return _accumulation(record)
    return (
        f'part = PipelineStage(model, stage, {count}, torch.device("cuda"), group=mesh["stage"].get_group())\n'
        f"schedule = {_SCHEDULES[record.schedule]}({'[part]' if record.solution.chunks > 1 else 'part'}, "
        f"n_microbatches={record.microbatches}, loss_fn=loss_fn)"
        + (f"  # {record.solution.chunks} chunks of layers per rank" if record.solution.chunks > 1 else "")
    )


def _accumulation(record: PlanRecord) -> str:
    if record.microbatches < 2:
        return ""
    return f"# Accumulate gradients over {record.microbatches} microbatches before each optimizer step."
