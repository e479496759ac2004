"""The code of plans: two processes train as one alone, or its first lines say why they would not."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from jupyter_autotrain.parallel import api  # noqa: E402 - after the check for torch
from jupyter_autotrain.parallel.plan import Megatron  # noqa: E402 - after the check for torch
from tests.matrices import long_besides  # noqa: E402 - after the check for torch
from tests.parallel import run_plan_code  # noqa: E402 - after the check for torch

SCRIPT = Path(run_plan_code.__file__)
STATES = {
    "data parallel": {"zero": 0, "recompute": "none"},
    "zero 1": {"zero": 1, "recompute": "none"},
    "sharded gradients": {"zero": 2, "recompute": "none"},
    "fully sharded": {"zero": 3, "recompute": "none"},
    "fully sharded, recomputed": {"zero": 3, "recompute": "full"},
    "recomputed": {"zero": 0, "recompute": "full"},
    "attention recomputed": {"zero": 0, "recompute": "selective"},
    "accumulated": {"zero": 0, "microbatches": 2},
    "zero 1, accumulated": {"zero": 1, "microbatches": 2},
    "fully sharded, accumulated": {"zero": 3, "microbatches": 2},
}
LAYERS = {
    "tensor": Megatron(tensor=2),
    "tensor and sequence": Megatron(tensor=2, sequence_parallel=True),
    "tensor, recomputed": Megatron(tensor=2, recompute="full"),
    "zero 1, tensor, accumulated": Megatron(tensor=2, zero=1, microbatches=2),
    "fully sharded, tensor and sequence, recomputed, accumulated": Megatron(
        tensor=2, sequence_parallel=True, zero=3, recompute="full", microbatches=2
    ),
    "data parallel, tensor, accumulated": Megatron(tensor=2, microbatches=2),
}
STAGES = {
    "1F1B": Megatron(pipeline=2, microbatches=4),
    "1F1B, recomputed": Megatron(pipeline=2, microbatches=2, recompute="full"),
    "interleaved": Megatron(pipeline=2, microbatches=2, interleaved=True),
    "1F1B, fully sharded": Megatron(pipeline=2, data=2, microbatches=2, zero=3),
    "1F1B, tensor": Megatron(pipeline=2, tensor=2, microbatches=2),
    "interleaved, tensor and sequence": Megatron(
        pipeline=2, tensor=2, sequence_parallel=True, microbatches=2, interleaved=True
    ),
}
MIXTURE = {"*.experts.experts": "e", "*": "batch"}
EXPERTS = {
    "expert": {"zero": 0},
    "fully sharded, expert, recomputed": {"zero": 3, "recompute": "full"},
    "expert, accumulated": {"zero": 0, "microbatches": 2},
}
OF_GPT2 = ("data parallel", "zero 1", "fully sharded, recomputed", "tensor and sequence")
CASES = [f"llama: {states}" for states in (*STATES, "tensor", "tensor, recomputed")]
CASES += [f"gpt2: {states}" for states in OF_GPT2]
CASES += [f"{model}: {states}" for model in ("gpt2 of 4", "stack") for states in [*STAGES][:3]]
CASES += [f"mixtral: {states}" for states in [*EXPERTS][:2]]
BY_DEFAULT = (
    "mixtral: fully sharded, expert, recomputed",
    "llama: zero 1, accumulated",
    "gpt2: tensor and sequence",
    "stack: 1F1B, recomputed",
)
ON_FOUR = [f"{model}: {states}" for model in ("llama", "gpt2", "t5") for states in LAYERS]
ON_FOUR += ["gpt2 of 4: 1F1B, fully sharded", "stack: 1F1B, fully sharded"]
ON_FOUR += ["gpt2 of 4: 1F1B, tensor", "gpt2 of 4: interleaved, tensor and sequence", "stack: 1F1B, tensor"]
ON_FOUR += [f"mixtral: {states}" for states in [*EXPERTS][:2]]
SLOWEST_S = 550  # two processes that import torch and transformers on a machine that others use


def planned(model, pins, mode="hybrid_parallel", ranks=2):
    words = {"mode": mode, "search": "recursive_programming"}
    return api.plan(run_plan_code.MODELS[model](), run_plan_code.batch_of(), f"{ranks}xA100", pins=pins, **words)


def planned_case(case, ranks=2):
    model, _, states = case.partition(": ")
    if states in EXPERTS:
        outer = ("batch",) * (ranks > 2)
        ops = {pattern: (*outer, loop) for pattern, loop in MIXTURE.items()}
        return planned(model, {"mesh": (2,) * (1 + len(outer)), "ops": ops, **EXPERTS[states]}, ranks=ranks)
    pinned = {**LAYERS, **STAGES}
    if states in pinned:
        return planned(model, pinned[states], ranks=ranks)
    return planned(model, STATES[states], "data_parallel", ranks)


def written(folder, cases, ranks):
    """Return the folder, with the code of each case."""
    for number, case in enumerate(cases):
        found = planned_case(case, ranks)
        assert found.view()["caveats"] == []
        (folder / f"plan_code_{number}.py").write_text(found.to_code())
    (folder / "cases.json").write_text(json.dumps(cases))
    return folder


def under_torchrun(folder, ranks):
    """Case → how far its ranks end from one process; all cases in one start of torchrun, which takes long."""
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    settings = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    done = subprocess.run(
        [*launch, SCRIPT, folder], env=settings, capture_output=True, text=True, timeout=SLOWEST_S, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads((folder / "found.json").read_text())


@pytest.fixture(scope="module")
def ran(ranks, tmp_path_factory):
    """By default in ranks that are there; under torchrun where all cases are asked for."""
    folder = tmp_path_factory.mktemp("code")
    if os.environ.get("AUTOTRAIN_LONG_TESTS"):
        return under_torchrun(written(folder, CASES, 2), 2)
    return ranks.run(2, run_plan_code.compare_all, folder=written(folder, BY_DEFAULT, 2))[0]


@pytest.fixture(scope="module")
def ran_on_four(tmp_path_factory):
    return under_torchrun(written(tmp_path_factory.mktemp("code"), ON_FOUR, 4), 4)


def assert_equal_to_one_process(found):
    assert found["error"] == ""
    assert found["loss"] < 1e-5  # the model computes it in 32 bits
    assert found["parameter"] < 1e-5


@pytest.mark.parametrize("case", long_besides(BY_DEFAULT, CASES))
def test_two_processes_with_the_plans_code_train_as_one_alone(ran, case):
    assert_equal_to_one_process(ran[case])


@pytest.mark.long
@pytest.mark.parametrize("case", ON_FOUR)
def test_four_processes_with_the_plans_code_train_as_one_alone(ran_on_four, case):
    assert_equal_to_one_process(ran_on_four[case])


def test_code_that_does_not_run_as_it_stands_says_so_first_and_in_the_view():
    pins = {"mesh": (2,), "ops": {"*self_attn.attention": ("h",), "*": (None,)}}
    what = "reads features of what comes as whole"
    found = planned("llama", pins)
    first = found.to_code().splitlines()[:7]
    assert first[1] == "# Does not run as it stands:"
    assert any(what in line for line in first[2:])
    assert any(what in sentence for sentence in found.view()["caveats"])


def test_weights_split_where_others_average_gradients_are_named():
    ops = {"*lm_head*": ("n",), "*": ("batch",)}
    found = planned("llama", {"mesh": (2,), "zero": 3, "ops": ops})
    assert found.view()["caveats"][0].startswith("lm_head: split over an axis of data")
    assert "apart = {" in found.to_code()


def test_only_the_layers_that_are_split_elsewhere_are_left_out_of_sharding():
    one = {"model.layers.1.mlp.gate_proj.*": ("n",), "model.layers.1.mlp.up_proj.*": ("n",)}
    ops = {**one, "model.layers.1.mlp.down_proj.*": ("k",), "*": ("batch",)}
    found = planned("llama", {"mesh": (2,), "zero": 3, "ops": ops})
    (line,) = [line for line in found.to_code().splitlines() if line.startswith("apart = ")]
    assert '"model.layers.1.mlp.gate_proj.*"' in line
    assert "layers.*" not in line


def test_past_keys_are_switched_off_where_the_trace_did_without_them():
    code = planned_case("llama: data parallel").to_code()
    assert "    for config in caching_configs(model):\n        config.use_cache = False" in code
