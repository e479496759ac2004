"""Plans as the configuration of other tools: read by the tool where it is installed, else by its documented schema."""

import tomllib
from dataclasses import replace

import pytest
import yaml

from jupyter_autotrain.errors import PlanError
from jupyter_autotrain.parallel import api
from jupyter_autotrain.parallel.cost.memory import Recompute
from jupyter_autotrain.parallel.plan import Megatron
from jupyter_autotrain.parallel.plan.degrees import Degrees
from jupyter_autotrain.parallel.plan.exports import EXPORTS
from tests.example_graphs import gpt

GRAPH = gpt(layers=4, width=64, heads=4, sequence=32, batch=16, vocabulary=256)
PLANS = {
    "one device": {"cluster": "1xA100", "mode": "stand_alone"},
    "DDP": {"pins": {"zero": 0, "microbatches": 2}},
    "ZeRO-1": {"pins": {"zero": 1}},
    "ZeRO-2": {"pins": {"zero": 2, "recompute": "selective"}},
    "FSDP": {"pins": {"zero": 3, "recompute": "full", "microbatches": 2}},
    "two machines": {"cluster": "2x2xA100", "pins": {"zero": 3}},
    "tensor": {"mode": "hybrid_parallel", "pins": Megatron(tensor=2, sequence_parallel=True, zero=3)},
    "pipeline": {"mode": "hybrid_parallel", "pins": Megatron(pipeline=2, microbatches=4, recompute="full")},
}
TORCHTITAN = {
    "training": {"local_batch_size", "global_batch_size", "mixed_precision_param"},
    "parallelism": {
        "data_parallel_replicate_degree",
        "data_parallel_shard_degree",
        "fsdp_reshard_after_forward",
        "tensor_parallel_degree",
        "context_parallel_degree",
        "expert_parallel_degree",
        "pipeline_parallel_degree",
        "pipeline_parallel_schedule",
        "pipeline_parallel_microbatch_size",
    },
    "activation_checkpoint": {"mode", "selective_ac_option"},
}


@pytest.fixture(scope="module", params=PLANS)
def plan(request):
    words = {"cluster": "4xA100", "mode": "data_parallel", "search": "recursive_programming"}
    return api.plan(GRAPH, **(words | PLANS[request.param]))


def values_of(text, name):
    """Return what the Python of an export leaves under a name; calls become their keyword arguments."""
    made = {
        "Trainer": dict,
        "FSDPStrategy": dict,
        "ModelParallelStrategy": dict,
        "TrainingArguments": dict,
        "LAYERS": {},
    }
    lines = [line for line in text.splitlines() if not line.startswith("from ")]
    exec(compile("\n".join(lines), "export", "exec"), made)
    return made[name]


def test_degrees_multiply_to_the_devices_and_samples_to_the_batch(plan):
    d = Degrees.of(plan)
    assert d.data * d.tensor * d.context * d.pipeline == d.processes == d.nodes * d.per_node
    assert d.samples * d.microbatches * d.data == d.batch == 16
    assert d.replicas * d.shards == d.data
    assert d.half == "bfloat16"


def test_accelerate_reads_its_file_and_starts_as_many_processes(plan, tmp_path):
    config = pytest.importorskip("accelerate.commands.config.config_args")
    d = Degrees.of(plan)
    file = tmp_path / "accelerate.yaml"
    file.write_text(plan.to_code("accelerate"))
    read = config.ClusterConfig.from_yaml_file(file)
    assert (read.num_processes, read.num_machines, read.mixed_precision) == (d.processes, d.nodes, "bf16")
    assert (str(read.distributed_type.value) == "FSDP") == bool(read.fsdp_config) == (d.zero > 0 and d.data > 1)
    if read.fsdp_config:
        assert read.fsdp_config["fsdp_reshard_after_forward"] == (d.zero == 3)
        assert read.fsdp_config["fsdp_activation_checkpointing"] == (d.recompute is Recompute.FULL)
    if d.tensor > 1:
        assert read.parallelism_config["parallelism_config_tp_size"] == d.tensor


def test_torchtitan_has_the_tables_of_its_schema(plan):
    d = Degrees.of(plan)
    read = tomllib.loads(plan.to_code("torchtitan"))
    assert all(values.keys() <= TORCHTITAN[table] for table, values in read.items())
    found = read["parallelism"]
    assert found["data_parallel_replicate_degree"] * found["data_parallel_shard_degree"] == d.data
    assert (found["tensor_parallel_degree"], found["pipeline_parallel_degree"]) == (d.tensor, d.pipeline)
    assert read["activation_checkpoint"]["mode"] == d.recompute


def test_deepspeed_multiplies_to_the_batch(plan):
    d = Degrees.of(plan)
    read = values_of(plan.to_code("deepspeed"), "config")
    micro = read["train_micro_batch_size_per_gpu"] * read["gradient_accumulation_steps"]
    assert read["train_batch_size"] == micro * d.data
    assert read["zero_optimization"]["stage"] == d.zero


def test_lightning_has_devices_precision_and_accumulation(plan):
    d = Degrees.of(plan)
    read = values_of(plan.to_code("lightning"), "trainer")
    assert read["devices"] * read["num_nodes"] == d.processes
    assert (read["precision"], read["accumulate_grad_batches"]) == ("bf16-mixed", d.microbatches)
    assert isinstance(read["strategy"], dict) == ((d.zero > 0 and d.data > 1) or d.tensor > 1)


def test_megatron_has_flags_and_values(plan):
    d = Degrees.of(plan)
    lines = [line for line in plan.to_code("megatron").splitlines() if not line.startswith("#")]
    read = dict(line.removeprefix("--").partition(" ")[::2] for line in lines)
    assert all(line.startswith("--") for line in lines)
    assert int(read["tensor-model-parallel-size"]) == d.tensor
    assert int(read["pipeline-model-parallel-size"]) == d.pipeline
    assert int(read["micro-batch-size"]) * d.data * d.microbatches == int(read["global-batch-size"])
    assert ("sequence-parallel" in read) == d.is_sequence_split
    assert ("use-distributed-optimizer" in read) == (d.zero == 1)


def test_transformers_takes_its_arguments(plan, tmp_path):
    pytest.importorskip("accelerate")
    transformers = pytest.importorskip("transformers")
    d = Degrees.of(plan)
    words = values_of(plan.to_code("trainer"), "args")
    words["output_dir"] = str(tmp_path)
    args = transformers.TrainingArguments(**words, use_cpu=True)
    assert args.per_device_train_batch_size * args.gradient_accumulation_steps * d.data == d.batch
    assert bool(args.fsdp) == (d.zero > 0 and d.data > 1)


def test_what_a_tool_cannot_express_is_said(plan):
    d = Degrees.of(plan)
    for tool in EXPORTS:
        head = [line for line in plan.to_code(tool).splitlines() if line.startswith("# - ")]
        said = " ".join(head)
        if d.pipeline > 1 and tool not in {"torchtitan", "megatron"}:
            assert "pipeline 2: " in said
        if d.recompute is Recompute.SELECTIVE and tool != "megatron":
            assert "recompute" in said
    assert plan.solution.name in plan.to_code("megatron").splitlines()[0]


def test_recompute_that_differs_by_layer_is_said():
    found = api.plan(GRAPH, cluster="4xA100", mode="data_parallel", search="recursive_programming", **PLANS["FSDP"])
    first = {name: op for name, op in found.decision.ops.items() if name.startswith("h.0.")}
    kept = {name: replace(op, recompute=Recompute.NONE) for name, op in first.items()}
    decision = replace(found.decision, ops={**found.decision.ops, **kept})
    other = replace(found, solution=replace(found.solution, decision=decision))
    assert "recompute differs by layer (none in 1, full in 3 of them)" in other.to_code("deepspeed")


def test_an_unknown_tool_is_answered_with_the_nearest():
    found = api.plan(GRAPH, None, "4xA100", mode="data_parallel", search="recursive_programming")
    with pytest.raises(PlanError, match="the nearest is 'deepspeed'"):
        found.to_code("deepsped")
    assert yaml.safe_load(found.to_code("accelerate"))
