"""A recipe as one module of torch alone: what the interpreter does, written out for one plan."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from jupyter_autotrain.parallel.apply.recipe import Recipe
from jupyter_autotrain.parallel.cost.memory import Recompute, ZeroLevel
from jupyter_autotrain.parallel.plan.modules import indices_of

_IMPORTS: Final = (
    ("import functools", "functools."),
    ("import os", "os."),
    ("import torch", "torch."),
    ("from torch import distributed", "distributed."),
    ("from torch.distributed._composable.replicate import replicate", "replicate("),
    ("from torch.distributed.device_mesh import init_device_mesh", "init_device_mesh("),
    ("from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard", "MixedPrecisionPolicy("),
    ("from torch.distributed.fsdp import fully_shard", "fully_shard("),
    ("from torch.utils._pytree import tree_map", "tree_map("),
    (
        "from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts",
        "CheckpointPolicy.",
    ),
    ("from torch.utils.checkpoint import checkpoint", "checkpoint,"),
)

_SELECTIVE: Final = """
ATTENTION = {
    getattr(torch.ops.aten, f"_scaled_dot_product_{kind}").default
    for kind in ("flash_attention", "flash_attention_for_cpu", "efficient_attention", "cudnn_attention")
}


def keep_all_but_attention(context, op, *args, **kwargs):
    return CheckpointPolicy.PREFER_RECOMPUTE if op in ATTENTION else CheckpointPolicy.MUST_SAVE


def selective():
    return create_selective_checkpoint_contexts(keep_all_but_attention)
"""

_MASTERS: Final = '''
def make_optimizer(model):
    """Return an optimizer of 32-bit copies of the weights, which it rounds into them after each step."""
    weights = [p for p in model.parameters() if p.requires_grad]
    copies = [torch.nn.Parameter(p.detach().float()) for p in weights]
    optimizer = torch.optim.AdamW(copies, lr=3e-4)

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
    return torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=3e-4)
"""

_LOOP: Final = '''
def my_part(batch, part):
    """Return this rank's samples of a microbatch, from a batch that is the same on all ranks."""
    place = {rank}part
    return tree_map(lambda values: values.chunk(RANKS * MICROBATCHES)[place].to(DEVICE), batch)


def loss_of(model, batch):
    found = model(**batch)
    return getattr(found, "loss", found)


def train_step(model, optimizer, batch, max_norm=None):
    """Train on one batch, with gradients clipped to a norm; return its loss over all ranks."""
    total = torch.zeros((), device=DEVICE)
    for part in range(MICROBATCHES):
{sync}        loss = loss_of(model, my_part(batch, part)) / MICROBATCHES
        loss.backward()
        total += loss.detach() / RANKS
    if max_norm is not None:
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
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


def recipe_code(recipe: Recipe, head: Sequence[str], *, batch_statistics: bool = False) -> str:
    """Return a module with `spread`, `make_optimizer`, `train_step` and `train`; it needs torch and nothing else.

    Args:
        recipe: Without a tensor axis.
        head: Comment lines above it.
        batch_statistics: Whether the model takes statistics over the batch.
    """
    masters = bool(recipe.compute) and recipe.zero is ZeroLevel.NONE
    selective = any(layer.recompute is Recompute.SELECTIVE for layer in recipe.layers)
    parts = [_constants(recipe), _SELECTIVE if selective else "", _spread(recipe, batch_statistics)]
    parts += [_MASTERS if masters else _OPTIMIZER, _loop(recipe)]
    body = "\n\n".join(part.strip("\n") + "\n" for part in parts if part)
    lines = [f"# {line}" for line in (*head, *_usage(recipe))]
    return "\n".join([*lines, "", *_imports(body), "", body])


def _usage(recipe: Recipe) -> Iterator[str]:
    start = f"torchrun --nproc-per-node {recipe.ranks} script.py" if recipe.ranks > 1 else "python script.py"
    yield f"Save it as plan_code.py. In your script, started with `{start}`"
    if recipe.ranks > 1:
        yield "(on several machines with --nnodes and a rendezvous), and with batches that are alike on all ranks:"
    yield "  from plan_code import train"
    yield "  for loss in train(model, loader): ..."


def _imports(body: str) -> Iterator[str]:
    names = set[str]()
    for line, use in _IMPORTS:
        used = re.search(rf"(?<![\w.]){re.escape(use)}", body)
        name = line.rpartition(" ")[2] if line.startswith("from") else line
        if used and name not in names:
            names.update([name, "checkpoint"] if "CheckpointPolicy" in line else [name])
            yield line


def _constants(recipe: Recipe) -> str:
    return (
        f"RANKS = {recipe.ranks}\n"
        f"MICROBATCHES = {recipe.microbatches}  # of each rank, whose gradients are accumulated\n"
        'KIND = "cuda" if torch.cuda.is_available() else "cpu"\n'
        'DEVICE = torch.device(KIND, int(os.environ.get("LOCAL_RANK", "0")) if KIND == "cuda" else 0)\n'
    )


def _spread(recipe: Recipe, batch_statistics: bool) -> str:
    lines = ["def spread(model):", '    """Return the model as this rank trains it, with the weights of rank 0."""']
    if recipe.ranks > 1:
        lines += _met(recipe)
        if batch_statistics:
            lines += ['    if KIND == "cuda":', "        model = torch.nn.SyncBatchNorm.convert_sync_batchnorm(model)"]
    lines += [*_switches(recipe), "    model.to(DEVICE)", *_recompute(recipe)]
    if recipe.ranks > 1:
        lines += ["    with torch.no_grad():", "        for tensor in (*model.parameters(), *model.buffers()):"]
        lines += ["            distributed.broadcast(tensor, src=0)"]
        lines += _replicated() if recipe.zero is ZeroLevel.NONE else _sharded(recipe)
    return "\n".join([*lines, "    return model"])


def _met(recipe: Recipe) -> Iterator[str]:
    yield '    if KIND == "cuda":'
    yield "        torch.cuda.set_device(DEVICE)"
    yield f"    mesh = {_mesh(recipe)}"
    yield "    torch.manual_seed(torch.initial_seed() % 2**32 + distributed.get_rank())  # ranks drop out other units"


def _mesh(recipe: Recipe) -> str:
    if recipe.replicas == 1:
        return f'init_device_mesh(KIND, ({recipe.ranks},), mesh_dim_names=("data",))'
    shape = f"({recipe.replicas}, {recipe.ranks // recipe.replicas})"
    return f'init_device_mesh(KIND, {shape}, mesh_dim_names=("replica", "data"))'


def _switches(recipe: Recipe) -> Iterator[str]:
    if recipe.without_cache:
        yield "    model.config.use_cache = False  # recompute would add past keys twice"
    if recipe.without_checkpointing:
        yield '    if hasattr(model, "gradient_checkpointing_disable"):'
        yield "        model.gradient_checkpointing_disable()"


def _recompute(recipe: Recipe) -> Iterator[str]:
    for mode in (Recompute.FULL, Recompute.SELECTIVE):
        words = ", context_fn=selective" if mode is Recompute.SELECTIVE else ""
        for path in _paths([layer.path for layer in recipe.layers if layer.recompute is mode]):
            yield from path
            yield "        layer = model.get_submodule(path)"
            yield f"        layer.forward = functools.partial(checkpoint, layer.forward, use_reentrant=False{words})"


def _replicated() -> Iterator[str]:
    yield "    replicate(model, device_mesh=mesh)"


def _sharded(recipe: Recipe) -> Iterator[str]:
    words = f", reshard_after_forward={recipe.zero is ZeroLevel.PARAMETERS}"
    if recipe.compute:
        words += ", mp_policy=policy"
        yield f"    policy = MixedPrecisionPolicy(param_dtype=torch.{recipe.compute})"
        yield "    model.float()  # shards of 32 bits"
    for path in _paths([layer.path for layer in recipe.layers]):
        yield from path
        yield f"        fully_shard(model.get_submodule(path), mesh=mesh{words})"
    yield f"    fully_shard(model, mesh=mesh{words})"


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
    if recipe.microbatches > 1 and recipe.ranks > 1:
        lines.append("last = part == MICROBATCHES - 1")
        if recipe.zero <= ZeroLevel.OPTIMIZER:
            lines.append("model.set_requires_gradient_sync(last)")
        if ZeroLevel.NONE < recipe.zero < ZeroLevel.PARAMETERS:
            lines.append("model.set_reshard_after_backward(last)")
        if recipe.zero is not ZeroLevel.NONE:
            lines.append("model.set_is_last_backward(last)")
    loop = _LOOP.replace("{sync}", "".join(f"        {line}\n" for line in lines))
    several = recipe.ranks > 1
    loop = loop.replace("{rank}", "distributed.get_rank() * MICROBATCHES + " if several else "")
    return loop.replace("{sum}", "    distributed.all_reduce(total)\n" if several else "")
