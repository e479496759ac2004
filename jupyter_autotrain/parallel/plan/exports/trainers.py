"""Tools that run a training loop of the user's, or their own, over torch: accelerate, Lightning, transformers' Trainer.

Sources: accelerate 1.15 `ClusterConfig`; Lightning 2.6 `Trainer`; transformers 5 `TrainingArguments`.
"""

from __future__ import annotations

from collections.abc import Iterator

from jupyter_autotrain.parallel.cost.memory import Recompute, ZeroLevel
from jupyter_autotrain.parallel.plan.degrees import Degrees
from jupyter_autotrain.parallel.plan.exports.shared import Missing, Values, accumulates, is_sharded, no_axes, no_offload


def accelerate(d: Degrees) -> str:
    """Return the file that `accelerate launch --config_file` reads."""
    kind = "FSDP" if is_sharded(d) else "MULTI_GPU"
    config: Values = {
        "compute_environment": "LOCAL_MACHINE",
        "distributed_type": kind if d.processes > 1 else "NO",
        "mixed_precision": "bf16" if d.half else "no",
        "num_machines": d.nodes,
        "num_processes": d.processes,
        "machine_rank": 0,
        "use_cpu": False,
    }
    if kind == "FSDP":
        config["fsdp_config"] = {
            "fsdp_version": 2,
            "fsdp_auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
            "fsdp_reshard_after_forward": d.zero is ZeroLevel.PARAMETERS,
            "fsdp_activation_checkpointing": d.recompute is Recompute.FULL,
            "fsdp_offload_params": False,
        }
    degrees = {"dp_replicate": d.replicas, "dp_shard": d.shards, "tp": d.tensor, "cp": d.context}
    if d.tensor > 1 or d.context > 1 or 1 < d.shards < d.data:
        config["parallelism_config"] = {f"parallelism_config_{name}_size": size for name, size in degrees.items()}
    lines = list(_yaml(config))
    if accumulates(d):
        lines.append(f"# In the script: Accelerator(gradient_accumulation_steps={d.microbatches}).")
    return "\n".join([*lines, ""])


def _yaml(values: Values, indent: str = "") -> Iterator[str]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield f"{indent}{key}:"
            yield from _yaml(value, indent + "  ")
        else:
            yield f"{indent}{key}: {str(value).lower() if isinstance(value, bool) else _scalar(value)}"


def _scalar(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


def accelerate_lacks(d: Degrees) -> Missing:
    """Yield what accelerate has no setting for."""
    yield from no_axes(d, "accelerate", pipeline=True, expert=True, sequence=True)
    yield from no_offload(d, "accelerate shares out weights with their optimizer states on the host, or neither")
    if d.zero is ZeroLevel.OPTIMIZER:
        yield "ZeRO-1: FSDP without resharding shares out gradients as well"
    if d.recompute is not Recompute.NONE and not (is_sharded(d) and d.recompute is Recompute.FULL):
        yield f"recompute {d.recompute}: call model.gradient_checkpointing_enable() in the script"


def lightning(d: Degrees) -> str:
    """Return the `Trainer` of Lightning."""
    words: Values = {
        "accelerator": "gpu",
        "devices": d.per_node,
        "num_nodes": d.nodes,
        "precision": "bf16-mixed" if d.half else "32-true",
        "accumulate_grad_batches": d.microbatches,
    }
    lines = ["from lightning.pytorch import Trainer"]
    strategy = '"ddp"' if d.processes > 1 else '"auto"'
    if d.tensor > 1:
        lines.append("from lightning.pytorch.strategies import ModelParallelStrategy")
        strategy = f"ModelParallelStrategy(data_parallel_size={d.data}, tensor_parallel_size={d.tensor})"
    elif is_sharded(d):
        lines.append("from lightning.pytorch.strategies import FSDPStrategy")
        words_given = ",\n        ".join(_fsdp_words(d))
        strategy = f"FSDPStrategy(\n        {words_given},\n    )"
    given = [f"    {key}={value!r},".replace("'", '"') for key, value in words.items()]
    return "\n".join([*lines, "", "trainer = Trainer(", f"    strategy={strategy},", *given, ")", ""])


def _fsdp_words(d: Degrees) -> Iterator[str]:
    whole = "FULL_SHARD" if d.zero is ZeroLevel.PARAMETERS else "SHARD_GRAD_OP"
    if 1 < d.shards < d.data:
        yield 'sharding_strategy="HYBRID_SHARD"'
        yield f"device_mesh=({d.replicas}, {d.shards})"
    else:
        yield f'sharding_strategy="{whole}"'
    yield "auto_wrap_policy=LAYERS"
    if d.recompute is Recompute.FULL:
        yield "activation_checkpointing_policy=LAYERS"


def lightning_lacks(d: Degrees) -> Missing:
    """Yield what Lightning has no setting for."""
    yield from no_axes(d, "Lightning", pipeline=True, expert=True, context=True)
    yield from no_offload(d, "Lightning shares out weights with their optimizer states on the host, or neither")
    if d.tensor > 1:
        yield "which layers are split: write them into the module's configure_model, where recompute goes, too"
    elif is_sharded(d):
        yield "LAYERS: the set of the model's layer classes, such as {LlamaDecoderLayer}"
    elif d.recompute is not Recompute.NONE:
        yield f"recompute {d.recompute}: call model.gradient_checkpointing_enable() in the module"
    if d.zero is ZeroLevel.OPTIMIZER:
        yield "ZeRO-1: SHARD_GRAD_OP shares out gradients as well"
    if d.recompute is Recompute.SELECTIVE and is_sharded(d):
        yield "recompute of attention alone"


def trainer(d: Degrees) -> str:
    """Return the arguments of transformers' Trainer."""
    words: Values = {
        "output_dir": "output",
        "per_device_train_batch_size": d.samples,
        "gradient_accumulation_steps": d.microbatches,
        "bf16": bool(d.half),
    }
    if is_sharded(d):
        words["fsdp"] = True
        words["fsdp_config"] = {
            "fsdp_version": 2,
            "reshard_after_forward": d.zero is ZeroLevel.PARAMETERS,
            "activation_checkpointing": d.recompute is Recompute.FULL,
        }
    elif d.recompute is Recompute.FULL:
        words["activation_checkpointing"] = True
    given = [f"    {key}={value!r},".replace("'", '"') for key, value in words.items()]
    lines = ["from transformers import TrainingArguments", "", "args = TrainingArguments(", *given, ")"]
    start = f"torchrun --nnodes {d.nodes} --nproc-per-node {d.per_node} script.py"
    return "\n".join([*lines, f"# Start with: {start}", ""])


def trainer_lacks(d: Degrees) -> Missing:
    """Yield what transformers' Trainer has no argument for."""
    yield from no_axes(d, "the Trainer", pipeline=True, expert=True, context=True, tensor=True)
    yield from no_offload(d, "the Trainer shares out weights with their optimizer states on the host, or neither")
    if d.zero is ZeroLevel.OPTIMIZER:
        yield "ZeRO-1: FSDP without resharding shares out gradients as well"
    if 1 < d.shards < d.data:
        yield f"hybrid sharding {d.replicas} x {d.shards}: shards go over all ranks"
    if d.recompute is Recompute.SELECTIVE:
        yield "recompute of attention alone: activation_checkpointing=True recomputes whole layers"
