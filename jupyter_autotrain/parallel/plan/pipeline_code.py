"""A recipe with pipeline stages as one module of torch alone: the interpreter's own functions, and a loop for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from jupyter_autotrain.parallel.apply.recipe import PipelineRecipe, Recipe
from jupyter_autotrain.parallel.cost.memory import ZeroLevel
from jupyter_autotrain.parallel.plan.recipe_code import optimizer_code, recompute_lines, share_lines, switches, usage
from jupyter_autotrain.parallel.plan.tensor_code import TABLE, Source, tensor_table, tuple_lines

_IMPORTS: Final = """
import functools
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


def pipeline_code(recipe: Recipe, head: Sequence[str]) -> str:
    """Return a module with `spread_stages`, `make_optimizer` and `train`; it needs torch and nothing else.

    Args:
        recipe: How the plan is executed.
        head: Comment lines above it.
    """
    masters = bool(recipe.compute) and recipe.samples == 1
    optimizer = optimizer_code(masters=masters, several_meshes=recipe.tensor is not None)
    own = ["\n".join(_table(recipe)), "\n".join(_spread(recipe)), optimizer, _LOOP]
    source = Source.of_interpreter(staged=True)
    source.read(_IMPORTS)
    shared = source.reached_from("\n".join(own))
    body = "\n\n".join(part.strip("\n") + "\n" for part in (*shared, *own))
    lines = [f"# {line}" for line in (*head, *usage(recipe))]
    imports = source.import_lines(body)
    return "\n".join([*lines, "", "from __future__ import annotations", "", *imports, "", body])


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


def _spread(recipe: Recipe) -> Iterator[str]:
    yield "def spread_stages(model):"
    yield '    """Keep the weights of this rank\'s stage, those of rank 0; return the ranks and what they exchange."""'
    yield "    ranks = meet(RECIPE)"
    yield "    own = ranks.rank // ranks.sharers"
    yield "    torch.manual_seed(torch.initial_seed() % 2**32 + own)  # ranks drop out other units"
    off = switches(without_cache=recipe.without_cache, without_checkpointing=recipe.without_checkpointing)
    yield from (f"    {line}" for line in off)
    yield from recompute_lines(recipe)
    yield "    copy_from_rank_0(model, ranks.device)"
    yield "    tied = keep_parts(model, RECIPE.pipeline, ranks)"
    yield "    model.to(ranks.device)"
    if recipe.tensor:
        yield from share_lines("ranks.tensor, staged=True")
    yield "    return ranks, spread_parts(model, RECIPE, ranks, tied)"
