"""A plan as torch code."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeVar

from jupyter_autotrain.agent.sizes import format_memory
from jupyter_autotrain.errors import PlanError
from jupyter_autotrain.parallel.apply.recipe import PipelineRecipe, Recipe
from jupyter_autotrain.parallel.choices import is_batch_norm
from jupyter_autotrain.parallel.cost.memory import Recompute, Schedule, ZeroLevel
from jupyter_autotrain.parallel.plan.code_parts import caveats, offloaded, replicas, submesh, tables
from jupyter_autotrain.parallel.plan.formatting import ms
from jupyter_autotrain.parallel.plan.modules import ModuleSharding, in_model, indices_of, layers_of, modules_of
from jupyter_autotrain.parallel.plan.plan_data import PlanData
from jupyter_autotrain.parallel.plan.recipe_code import (
    optimizer_code,
    recipe_code,
    recompute_lines,
    share_lines,
    start_lines,
    switches,
    usage,
    weights_line,
)
from jupyter_autotrain.parallel.plan.recipes import recipe_of
from jupyter_autotrain.parallel.plan.tensor_code import FUTURE, TABLE, Source, tensor_table, tuple_lines
from jupyter_autotrain.parallel.tensor_axis import tensor_axis, tensor_recipe, why_not_executed

Value = TypeVar("Value", int, Recompute)

_SCHEDULES = {
    Schedule.GPIPE: "ScheduleGPipe",
    Schedule.ONE_F_ONE_B: "Schedule1F1B",
    Schedule.INTERLEAVED: "ScheduleInterleaved1F1B",
}


def code(plan: PlanData, weights: str = "") -> str:
    """Return the recipe of a plan that runs, written out; else calls of torch by module, which expect `model`.

    Args:
        plan: The plan; one that runs, if it is to read weights.
        weights: Folder or file of which each rank reads its part; "": the model has values.
    """
    costs = plan.decision_costs()
    if not plan.beyond:
        recipe = recipe_of(costs)
        if recipe.pipeline:
            return pipeline_code(recipe, [_title(plan)], weights)
        statistics = any(map(is_batch_norm, plan.graph.ops))
        return recipe_code(recipe, [_title(plan)], batch_statistics=statistics, weights=weights)
    modules = modules_of(costs)
    here = [module for module in modules if not module.host_table]
    meta = plan.graph.meta
    off = switches(without_cache="cache" in meta, without_checkpointing="note" in meta)
    parts = [_mesh(plan), "\n".join(off), tables(modules), _tensor(plan), _recompute(modules)]
    parts += [_stage_cut(plan, modules), replicas(plan, modules), offloaded(here), _pipeline(plan)]
    own = "\n\n".join(filter(None, parts))
    source = Source.of_interpreter()
    source.read(_IMPORTS)
    body = "\n\n".join([*source.reached_from(own), own])
    imports = "\n".join(source.import_lines(body))
    return f"{_head(plan, caveats(costs, modules))}\n{FUTURE}\n\n{imports}\n\n{body}\n"


def check_reading(plan: PlanData, tool: str) -> None:
    """Check that the code of a plan can read weights.

    Raises:
        PlanError: It is a tool's configuration, or the plan does not run.
    """
    if tool or plan.beyond:
        found = f"the configuration of {tool}" if tool else f"a plan with what is not executed ({plan.beyond[0]})"
        raise PlanError(
            f"Weights are given for {found}.",
            "Code of torch alone, of a plan that runs: it reads them.",
            "Leave out `weights`; the script there loads the model.",
        )


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


_IMPORTS = """
import fnmatch
import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe, ScheduleInterleaved1F1B
from torch.nn.parallel import DistributedDataParallel
from torchao.optim import CPUOffloadOptimizer
"""


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


def _tensor(plan: PlanData) -> str:
    """Layers shared over the tensor axis, by the interpreter's own function; none where it does not execute that."""
    axis = tensor_axis(plan.graph, plan.decision)
    if axis is None or why_not_executed(plan.graph, plan.decision):
        return ""
    recipe = tensor_recipe(plan.graph, plan.decision)
    table = tensor_table(recipe) if recipe else ()
    return "\n".join([*table, f"share_layers(model, {TABLE}, {submesh(plan, (axis,))})"])


def _recompute(modules: Sequence[ModuleSharding]) -> str:
    """Layers that recompute, by the interpreter's own function."""
    by_mode: dict[tuple[str, Recompute], list[int]] = defaultdict(list)
    for (container, index), inside in layers_of(modules).items():
        mode = _most_common([m.recompute for m in inside])
        if mode is not Recompute.NONE:
            by_mode[container, mode].append(index)
    lines = []
    for (container, mode), indices in by_mode.items():
        lines.append(f"for i in {indices_of(indices)}:")
        lines.append(f"    recompute({in_model(container)}[i], attention_alone={mode is Recompute.SELECTIVE})")
    return "\n".join(lines)


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


# A recipe with pipeline stages as one module of torch alone: the interpreter's own functions, and a loop for them


_PIPELINE_IMPORTS: Final = """
import functools
import warnings
import torch
from torch import distributed
from torch.utils._pytree import tree_map
"""

_LOOP: Final = '''
def loss_of(model, batch):
    found = model(**batch) if hasattr(batch, "keys") else model(*batch)
    return getattr(found, "loss", found)


def microbatches_of(batch, ranks):
    """Return this rank's microbatches of a batch that is the same on all ranks."""
    count = RECIPE.microbatches
    places = range(ranks.sample_rank * count, (ranks.sample_rank + 1) * count)
    return [tree_map(lambda x: x.chunk(ranks.samples * count)[place].to(ranks.device), batch) for place in places]


def train(model, loader, epochs=1, max_norm=None):
    """Train on whole batches, with gradients clipped to a norm; yield each loss, on every rank."""
    ranks, exchanged = spread_stages(model)
    optimizer = make_optimizer(model)
    forward = functools.partial(loss_of, model)
    pipeline = Pipeline(model, RECIPE, ranks, exchanged.parts, forward)
    tied = {weight for weight, _ in exchanged.tied}
    for _ in range(epochs):
        for batch in loader:
            loss = pipeline.run(microbatches_of(batch, ranks))
            exchanged.sum_tied()
            if max_norm is not None:
                clip(model.parameters(), max_norm, stages=RECIPE.pipeline.stages, tied=tied)
            optimizer.step()
            optimizer.zero_grad()
            distributed.all_reduce(loss)  # only the last stage has made any
            yield loss / (ranks.samples * ranks.sharers)
'''


def pipeline_code(recipe: Recipe, head: Sequence[str], weights: str = "") -> str:
    """Return a module with `spread_stages`, `make_optimizer` and `train`; it needs torch and nothing else.

    Args:
        recipe: How the plan is executed.
        head: Comment lines above it.
        weights: Folder or file of which each rank reads its part; "": the model has values.
    """
    masters = bool(recipe.compute) and recipe.samples == 1
    optimizer = optimizer_code(masters=masters, several_meshes=recipe.tensor is not None)
    loads = bool(weights)
    table = "\n".join(_table(recipe)) + weights_line(weights)
    own = [table, "\n".join(_spread(recipe, loads=loads)), optimizer, _LOOP]
    source = Source.of_interpreter(staged=True, loads=loads)
    source.read(_PIPELINE_IMPORTS)
    shared = source.reached_from("\n".join(own))
    body = "\n\n".join(part.strip("\n") + "\n" for part in (*shared, *own))
    lines = [f"# {line}" for line in (*head, *usage(recipe, loads=loads))]
    imports = source.import_lines(body)
    return "\n".join([*lines, "", FUTURE, "", *imports, "", body])


def _table(recipe: Recipe) -> Iterator[str]:
    """Yield the lines of what the interpreter's functions read of a recipe."""
    assert recipe.pipeline is not None
    if recipe.tensor:
        yield from tensor_table(recipe.tensor)
    yield "RECIPE = Recipe("
    yield f"    ranks={recipe.ranks},"
    if recipe.replicas > 1:
        yield f"    replicas={recipe.replicas},"
    if recipe.zero is not ZeroLevel.NONE:
        yield f"    zero=ZeroLevel.{recipe.zero.name},"
    yield f"    microbatches={recipe.microbatches},"
    if recipe.compute:
        yield f'    compute="{recipe.compute}",'
    if recipe.tensor:
        yield f"    tensor={TABLE},"
    yield from (f"    {line}" for part in _stages(recipe.pipeline) for line in part.splitlines())
    yield ")\n"


def _stages(pipeline: PipelineRecipe) -> Iterator[str]:
    yield "pipeline=PipelineRecipe("
    yield f"    stages={pipeline.stages},"
    for name in ("layers", "first", "last"):
        yield from tuple_lines(name, ((path, "{}") for path in getattr(pipeline, name)))
    yield f"    ends={pipeline.ends},"
    yield f"    schedule=Schedule.{pipeline.schedule.name},"
    yield f"    chunks={pipeline.chunks},"
    yield "),"


def _spread(recipe: Recipe, *, loads: bool) -> Iterator[str]:
    whose = "of WEIGHTS" if loads else "those of rank 0"
    yield "def spread_stages(model):"
    yield f'    """Keep the weights of this rank\'s stage, {whose}; return the ranks and what they exchange."""'
    yield "    ranks = meet(RECIPE)"
    if loads:
        yield from start_lines("ranks")
    yield "    own = ranks.rank // ranks.sharers"
    yield "    torch.manual_seed(torch.initial_seed() % 2**32 + own)  # ranks drop out other units"
    off = switches(without_cache=recipe.without_cache, without_checkpointing=recipe.without_checkpointing)
    yield from (f"    {line}" for line in off)
    yield from recompute_lines(recipe)
    if not loads:
        yield "    copy_from_rank_0(model, ranks.device)"
    yield "    tied = keep_parts(model, RECIPE.pipeline, ranks)"
    if not loads:
        yield "    model.to(ranks.device)"
    if recipe.tensor:
        yield from share_lines("ranks.tensor, staged=True")
    yield f"    return ranks, spread_parts(model, RECIPE, ranks, tied{', start.fill' if loads else ''})"
