"""Frameworks with engines of their own: torchtitan, DeepSpeed, Megatron-LM.

Sources: torchtitan 0.2 `JobConfig` (TOML); DeepSpeed 0.18 configuration JSON; Megatron-LM `arguments.py` of core 0.15.
"""

from __future__ import annotations

from collections.abc import Iterator

from jupyter_autotrain.parallel.cost.memory import Recompute, ZeroLevel
from jupyter_autotrain.parallel.plan.degrees import Degrees
from jupyter_autotrain.parallel.plan.exports.shared import Missing, Values, is_sharded, no_axes, no_offload


def torchtitan(d: Degrees) -> str:
    """Return tables of a torchtitan job configuration."""
    schedule = "Interleaved1F1B" if d.chunks > 1 else "1F1B"
    reshard = "always" if d.zero is ZeroLevel.PARAMETERS else "never"
    tables: dict[str, Values] = {
        "training": {
            "local_batch_size": d.samples * (d.microbatches if d.pipeline > 1 else 1),
            "global_batch_size": d.batch,
            "mixed_precision_param": "bfloat16" if d.half else "float32",
        },
        "parallelism": {
            "data_parallel_replicate_degree": d.replicas,
            "data_parallel_shard_degree": d.shards,
            "fsdp_reshard_after_forward": reshard,
            "tensor_parallel_degree": d.tensor,
            "context_parallel_degree": d.context,
            "expert_parallel_degree": d.expert,
            "pipeline_parallel_degree": d.pipeline,
        },
        "activation_checkpoint": {"mode": str(d.recompute)},
    }
    if d.pipeline > 1:
        tables["parallelism"] |= {
            "pipeline_parallel_schedule": schedule,
            "pipeline_parallel_microbatch_size": d.samples,
        }
    if d.recompute is Recompute.SELECTIVE:
        tables["activation_checkpoint"]["selective_ac_option"] = "op"
    return "\n".join(_toml(name, values) for name, values in tables.items())


def _toml(name: str, values: Values) -> str:
    lines = [f"{key} = {_quoted(value)}" for key, value in values.items()]
    return "\n".join([f"[{name}]", *lines, ""])


def _quoted(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


def torchtitan_lacks(d: Degrees) -> Missing:
    """Yield what torchtitan has no setting for."""
    yield from no_offload(d, "torchtitan has no optimizer on the host alone")
    if d.zero in {ZeroLevel.OPTIMIZER, ZeroLevel.GRADIENTS}:
        yield f"ZeRO-{d.zero:d}: weights are sharded too, and stay gathered between forward and backward pass"
    if d.recompute is Recompute.SELECTIVE:
        yield "recompute of attention alone: its selective mode keeps every second product as well"
    if d.shards * d.context % d.expert:
        yield f"expert {d.expert} beside whole copies of other weights: it lies within the ranks that share these out"
    if d.tensor > 1 and not d.is_sequence_split:
        yield "tensor parallelism without splitting the sequence: torchtitan's plans split it between layers"


def deepspeed(d: Degrees) -> str:
    """Return the configuration that `deepspeed.initialize` takes."""
    zero: Values = {"stage": int(d.zero)}
    if 1 < d.shards < d.data:
        zero["mics_shard_size"] = d.shards
    if d.offload:
        zero["offload_optimizer"] = {"device": "cpu", "pin_memory": True}
    config: Values = {
        "train_batch_size": d.batch,
        "train_micro_batch_size_per_gpu": d.samples,
        "gradient_accumulation_steps": d.microbatches,
        "bf16": {"enabled": bool(d.half)},
        "zero_optimization": zero,
    }
    if d.tensor > 1:
        config["tensor_parallel"] = {"autotp_size": d.tensor}
    lines = [f"    {key!r}: {value!r},".replace("'", '"') for key, value in config.items()]
    return "\n".join(["config = {", *lines, "}", "# deepspeed.initialize(model=model, config=config)", ""])


def deepspeed_lacks(d: Degrees) -> Missing:
    """Yield what DeepSpeed's configuration has no setting for."""
    yield from no_axes(d, "DeepSpeed's configuration", pipeline=True, expert=True, context=True, sequence=True)
    if d.recompute is not Recompute.NONE:
        yield f"recompute {d.recompute}: call model.gradient_checkpointing_enable(), or deepspeed.checkpointing"


def megatron(d: Degrees) -> str:
    """Return the flags of Megatron-LM's training scripts."""
    flags: dict[str, object] = {
        "tensor-model-parallel-size": d.tensor,
        "pipeline-model-parallel-size": d.pipeline,
        "context-parallel-size": d.context,
        "expert-model-parallel-size": d.expert,
        "micro-batch-size": d.samples,
        "global-batch-size": d.batch,
    }
    if d.chunks > 1:
        flags["num-layers-per-virtual-pipeline-stage"] = max(1, d.layers // (d.pipeline * d.chunks))
    if d.recompute is Recompute.FULL:
        flags |= {"recompute-granularity": "full", "recompute-method": "uniform", "recompute-num-layers": 1}
    elif d.recompute is Recompute.SELECTIVE:
        flags["recompute-granularity"] = "selective"
    if d.offload:
        flags["optimizer-offload-fraction"] = 1.0
    lines = [f"--{name} {value}" for name, value in flags.items()]
    lines += [f"--{name}" for name, is_set in _megatron_switches(d) if is_set]
    return "\n".join(lines) + "\n"


def _megatron_switches(d: Degrees) -> Iterator[tuple[str, bool]]:
    yield "sequence-parallel", d.is_sequence_split
    yield "use-distributed-optimizer", d.zero is ZeroLevel.OPTIMIZER
    yield "use-torch-fsdp2", is_sharded(d) and d.zero is not ZeroLevel.OPTIMIZER
    yield "torch-fsdp2-no-reshard-after-forward", d.zero is ZeroLevel.GRADIENTS
    yield "bf16", bool(d.half)
    yield "optimizer-cpu-offload", d.offload


def megatron_lacks(d: Degrees) -> Missing:
    """Yield what Megatron-LM has no flag for."""
    if 1 < d.shards < d.data:
        yield f"hybrid sharding {d.replicas} x {d.shards}: shards go over all ranks of data"
    if d.zero is ZeroLevel.GRADIENTS:
        yield "ZeRO-2: weights are sharded too, and stay gathered between forward and backward pass"
