"""A recipe as one module of torch alone: what the interpreter does, written out for one plan."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from jupyter_autotrain.parallel.apply.recipe import Recipe, TensorRecipe
from jupyter_autotrain.parallel.cost.memory import Recompute, ZeroLevel
from jupyter_autotrain.parallel.plan.modules import indices_of
from jupyter_autotrain.parallel.plan.tensor_code import EXPERT_TABLE, FUTURE, TABLE, Source, expert_table, tensor_table

_IMPORTS: Final = """
import os
import warnings
import torch
from torch import distributed
from torch.distributed._composable.replicate import replicate
from torch.distributed._composable.replicate_with_fsdp import replicate as replicate_split
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.utils._pytree import tree_map
"""

_MASTERS: Final = '''
def make_optimizer(model):
    """Return an optimizer of 32-bit copies of the weights, which it rounds into them after each step."""
    weights = [p for p in model.parameters() if p.requires_grad]
    copies = [torch.nn.Parameter(p.detach().float()) for p in weights]
    optimizer = torch.optim.AdamW(copies, lr=3e-4{kernels})

    def take_gradients(*_):
        for copy, weight in zip(copies, weights):
            copy.grad = None if weight.grad is None else weight.grad.float()
            weight.grad = None

    def write_back(*_):
        with torch.no_grad():
            for copy, weight in zip(copies, weights):
                weight.copy_(copy)

    optimizer.register_step_pre_hook(take_gradients)
    optimizer.register_step_post_hook(write_back)
    return optimizer
'''

_OPTIMIZER: Final = """
def make_optimizer(model):
    return torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=3e-4{kernels})
"""

_LOOP: Final = '''
def my_part(batch, part):
    """Return this rank's samples of a microbatch, from a batch that is the same on all ranks."""
    place = {rank}part
    return tree_map(lambda values: values.chunk({groups} * MICROBATCHES)[place].to(DEVICE), batch)


def loss_of(model, batch):
    found = model(**batch) if hasattr(batch, "keys") else model(*batch)
    return getattr(found, "loss", found)


def train_step(model, optimizer, batch, max_norm=None):
    """Train on one batch, with gradients clipped to a norm; return its loss over all ranks."""
    total = torch.zeros((), device=DEVICE)
    for part in range(MICROBATCHES):
{sync}        loss = loss_of(model, my_part(batch, part)) / MICROBATCHES
        loss.backward()
        total += loss.detach() / RANKS
    if max_norm is not None:
        {clip}(model.parameters(), max_norm)
    optimizer.step()
    optimizer.zero_grad()
{sum}    return total


def train(model, loader, epochs=1, max_norm=None):
    """Train on whole batches; yield each loss."""
    model = spread(model)
    optimizer = make_optimizer(model)
    for _ in range(epochs):
        for batch in loader:
            yield train_step(model, optimizer, batch, max_norm)
'''


def recipe_code(recipe: Recipe, head: Sequence[str], *, batch_statistics: bool = False, weights: str = "") -> str:
    """Return a module with `spread`, `make_optimizer`, `train_step` and `train`; it needs torch and nothing else.

    Args:
        recipe: How the plan is executed.
        head: Comment lines above it.
        batch_statistics: Whether the model takes statistics over the batch.
        weights: Folder or file of which each rank reads its part; "": the model has values.
    """
    masters = bool(recipe.compute) and not _is_grouped(recipe)
    optimizer = optimizer_code(masters=masters, several_meshes=_has_own_parts(recipe))
    own = [_spread(recipe, batch_statistics=batch_statistics, loads=bool(weights)), optimizer, _loop(recipe)]
    if recipe.tensor:
        own.insert(0, "\n".join(tensor_table(recipe.tensor)))
    if recipe.experts:
        own.insert(0, "\n".join(expert_table(recipe.experts)))
    source = Source.of_interpreter(loads=bool(weights))
    source.read(_IMPORTS)
    shared = source.reached_from("\n".join(own))
    constants = _constants(recipe) + weights_line(weights)
    body = "\n\n".join(part.strip("\n") + "\n" for part in (constants, *shared, *own))
    lines = [f"# {line}" for line in (*head, *usage(recipe, loads=bool(weights)))]
    return "\n".join([*lines, "", FUTURE, "", *source.import_lines(body), "", body])


def weights_line(weights: str) -> str:
    """Return the line that says where weights are read."""
    return f"WEIGHTS = {json.dumps(weights)}  # each rank reads its part\n" if weights else ""


def optimizer_code(*, masters: bool, several_meshes: bool = False) -> str:
    """Return `make_optimizer`, of the weights or of 32-bit copies of them."""
    code = _MASTERS if masters else _OPTIMIZER
    return code.replace("{kernels}", ", foreach=False" if several_meshes else "")


def _is_grouped(recipe: Recipe) -> bool:
    """Return whether weights are gathered and reduced by FSDP, as it does where it shards none as well."""
    return recipe.samples > 1 and (recipe.zero is not ZeroLevel.NONE or _has_own_parts(recipe))


def _has_own_parts(recipe: Recipe) -> bool:
    """Return whether ranks have parts of layers, or experts of their own."""
    return recipe.tensor is not None or recipe.experts is not None


def _has_fused(recipe: TensorRecipe) -> bool:
    """Return whether several projections lie in one weight, of which a rank has its share of each."""
    return any(module.parts > 1 or module.sizes for module in recipe.modules)


def usage(recipe: Recipe, *, loads: bool) -> Iterator[str]:
    """Yield how a script uses the code, and how it is started."""
    start = f"torchrun --nproc-per-node {recipe.ranks} script.py" if recipe.ranks > 1 else "python script.py"
    yield f"Save it as plan_code.py. In your script, started with `{start}`"
    if recipe.ranks > 1:
        yield "(on several machines with --nnodes and a rendezvous), with batches that are alike on all ranks:"
    if loads:
        yield "The model is made under `with torch.device('meta'):`; each rank reads its part of WEIGHTS."
    elif recipe.ranks > 1:
        yield "The model has values, those of rank 0 (to_code(weights=folder): each rank reads its part of them)."
    yield "  from plan_code import train"
    yield "  for loss in train(model, loader): ..."


def _constants(recipe: Recipe) -> str:
    sharing = recipe.ranks // recipe.samples
    shared = f"SHARING = {sharing}  # ranks in a row that share layers, and have the same samples\n"
    return (
        f"RANKS = {recipe.ranks}\n{shared if recipe.tensor else ''}"
        f"MICROBATCHES = {recipe.microbatches}  # of each rank, whose gradients are accumulated\n"
        'KIND = "cuda" if torch.cuda.is_available() else "cpu"\n'
        'DEVICE = torch.device(KIND, int(os.environ.get("LOCAL_RANK", "0")) if KIND == "cuda" else 0)\n'
    )


def _spread(recipe: Recipe, *, batch_statistics: bool, loads: bool) -> str:
    whose = "its part of WEIGHTS" if loads else "the weights of rank 0"
    lines = ["def spread(model):", f'    """Return the model as this rank trains it, with {whose}."""']
    if recipe.ranks > 1:
        lines += _met(recipe)
    if loads:
        lines += start_lines(f"Ranks({'distributed.get_rank()' if recipe.ranks > 1 else '0'}, RANKS, DEVICE, None)")
    if recipe.ranks > 1 and batch_statistics:
        lines += ['    if KIND == "cuda":', "        model = torch.nn.SyncBatchNorm.convert_sync_batchnorm(model)"]
    off = switches(without_cache=recipe.without_cache, without_checkpointing=recipe.without_checkpointing)
    lines += [f"    {line}" for line in off]
    if not loads:
        lines.append("    model.to(DEVICE)")
    lines += recompute_lines(recipe)
    if recipe.ranks > 1 and not loads:
        lines.append("    copy_from_rank_0(model, DEVICE)")
    lines += _distributed(recipe, loads=loads)
    return "\n".join([*lines, "    return model"])


def _met(recipe: Recipe) -> Iterator[str]:
    yield '    if KIND == "cuda":'
    yield "        torch.cuda.set_device(DEVICE)"
    yield f"    mesh = {_mesh(recipe)}"
    if recipe.experts:
        yield '    samples = mesh._flatten("samples")'
    rank = "distributed.get_rank() // SHARING" if recipe.tensor else "distributed.get_rank()"
    yield f"    torch.manual_seed(torch.initial_seed() % 2**32 + {rank})  # ranks drop out other units"


def _mesh(recipe: Recipe) -> str:
    sizes = {"replica": recipe.replicas, "data": recipe.samples // recipe.replicas}
    if recipe.replicas == 1:
        del sizes["replica"]
    if recipe.tensor:
        sizes["tensor"] = recipe.tensor.ranks
    if recipe.experts:
        sizes = {"data": recipe.samples // recipe.experts.ranks, "expert": recipe.experts.ranks}
    names = ", ".join(f'"{name}"' for name in sizes)
    shape = ", ".join(map(str, sizes.values()))
    comma = "," if len(sizes) == 1 else ""
    return f"init_device_mesh(KIND, ({shape}{comma}), mesh_dim_names=({names}{comma}))"


def switches(*, without_cache: bool, without_checkpointing: bool) -> Iterator[str]:
    """Yield what switches off of the model what a plan takes to be off."""
    if without_cache:
        yield "for config in caching_configs(model):"
        yield "    config.use_cache = False  # past keys would be added twice"
    if without_checkpointing:
        yield 'if hasattr(model, "gradient_checkpointing_disable"):'
        yield "    model.gradient_checkpointing_disable()"


def recompute_lines(recipe: Recipe) -> Iterator[str]:
    """Yield what makes layers recompute."""
    for mode in (Recompute.FULL, Recompute.SELECTIVE):
        for path in _paths([layer.path for layer in recipe.layers if layer.recompute is mode]):
            yield from path
            yield f"        recompute(model.get_submodule(path), attention_alone={mode is Recompute.SELECTIVE})"


def start_lines(ranks: str) -> Iterator[str]:
    """Yield what finds the values of a model on the meta device, before anything of it is split."""
    yield f"    start = start_of(model, WEIGHTS, {ranks})"
    yield "    if start.told:"
    yield "        warnings.warn(start.told)"


def _distributed(recipe: Recipe, *, loads: bool) -> Iterator[str]:
    """Yield what makes the weights those of a rank: layers shared, then replicas or shards."""
    if recipe.tensor:
        yield from share_lines('mesh["tensor"]')
    if recipe.experts:
        yield f'    share_experts(model, {EXPERT_TABLE}, mesh["expert"])'
    if _is_grouped(recipe):
        yield from _sharded(recipe)
    if loads:
        yield "    start.fill(model)"
    if recipe.samples > 1 and not _is_grouped(recipe):
        yield "    replicate(model, device_mesh=mesh)"


def share_lines(words: str) -> Iterator[str]:
    """Yield what makes ranks of a tensor axis share layers; the axis is the first of the words."""
    yield f"    share_layers(model, {TABLE}, {words})"
    yield '    warnings.filterwarnings("ignore", _VIEW)  # autograd itself refuses to change such a view in place'


def _sharded(recipe: Recipe) -> Iterator[str]:
    call = "replicate_split"
    axes = '["replica", "data"]' if recipe.replicas > 1 else '["data"]'
    mesh = f"mesh{axes if recipe.tensor else ''}"
    if recipe.experts:
        mesh = "samples"
    words = ""
    if recipe.zero is not ZeroLevel.NONE:
        call = "fully_shard"
        words += f", reshard_after_forward={recipe.zero is ZeroLevel.PARAMETERS}"
    if recipe.compute:
        words += ", mp_policy=policy"
        yield f"    policy = MixedPrecisionPolicy(param_dtype=torch.{recipe.compute})"
        yield "    model.float()  # shards of 32 bits"
    if recipe.tensor and recipe.zero is not ZeroLevel.NONE and _has_fused(recipe.tensor):
        words += ", shard_placement_fn=shard_beside_parts"
    if recipe.experts:
        beside = ', shard_placement_fn=shard_beside(mesh["data"].size())' if recipe.zero is not ZeroLevel.NONE else ""
        yield f"    for path in {EXPERT_TABLE}.modules:"
        yield f'        {call}(model.get_submodule(path), mesh=mesh["data"]{words}{beside})'
    for path in _paths([layer.path for layer in recipe.layers]):
        yield from path
        yield f"        {call}(model.get_submodule(path), mesh={mesh}{words})"
    yield f"    {call}(model, mesh={mesh}{words})"


def _paths(paths: Sequence[str]) -> Iterator[tuple[str]]:
    """Yield the head of a loop over `path` for each list of layers."""
    by_list: dict[str, list[int]] = defaultdict(list)
    for path in paths:
        container, _, index = path.rpartition(".")
        by_list[container].append(int(index))
    for container, indices in by_list.items():
        template = f'"{container}.{{}}"' if container else '"{}"'
        yield (f"    for path in map({template}.format, {indices_of(indices)}):",)


def _loop(recipe: Recipe) -> str:
    """Return the loop, with what is exchanged with the last microbatch of a step alone."""
    lines = []
    if recipe.microbatches > 1 and recipe.samples > 1:
        lines.append("last = part == MICROBATCHES - 1")
        if recipe.zero <= ZeroLevel.OPTIMIZER:
            lines.append("model.set_requires_gradient_sync(last)")
        if _is_grouped(recipe) and recipe.zero < ZeroLevel.PARAMETERS:
            lines.append("model.set_reshard_after_backward(last)")
        if _is_grouped(recipe):
            lines.append("model.set_is_last_backward(last)")
    several = recipe.ranks > 1
    rank = "distributed.get_rank() // SHARING" if recipe.tensor else "distributed.get_rank()"
    words = {
        "{sync}": "".join(f"        {line}\n" for line in lines),
        "{rank}": f"{rank} * MICROBATCHES + " if several else "",
        "{groups}": "RANKS // SHARING" if recipe.tensor else "RANKS",
        "{clip}": "clip" if _has_own_parts(recipe) else "torch.nn.utils.clip_grad_norm_",
        "{sum}": "    distributed.all_reduce(total)\n" if several else "",
    }
    loop = _LOOP
    for name, text in words.items():
        loop = loop.replace(name, text)
    return loop
