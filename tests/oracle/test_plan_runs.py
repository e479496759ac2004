"""The code of plans under torchrun: two processes train as one alone, or its first lines say why they would not."""

import importlib.util
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
from jupyter_autotrain.parallel.plan.code_parts import caveats  # noqa: E402 - after the check for torch
from jupyter_autotrain.parallel.plan.modules import modules_of  # noqa: E402 - after the check for torch

SCRIPT = Path(__file__).with_name("run_plan_code.py")
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
OF_GPT2 = ("data parallel", "zero 1", "fully sharded, recomputed")
CASES = [f"llama: {states}" for states in (*STATES, "tensor")] + [f"gpt2: {states}" for states in OF_GPT2]
SLOWEST_S = 550  # two processes that import torch and transformers on a machine that others use
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("run_plan_code", SCRIPT)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def planned(script, model, pins, mode="hybrid_parallel"):
    words = {"mode": mode, "search": "recursive_programming"}
    found = api.plan(script.MODELS[model](), script.batch_of(), "2xA100", pins=pins, **words)
    priced = found.decision_costs()
    return found, caveats(priced, modules_of(priced))


def planned_case(script, case):
    model, _, states = case.partition(": ")
    if states == "tensor":
        return planned(script, model, Megatron(tensor=2))
    return planned(script, model, STATES[states], "data_parallel")


@pytest.fixture(scope="module")
def ran(script, tmp_path_factory):
    """Case → how far its ranks end from one process; all cases in one start of torchrun, which takes long."""
    folder = tmp_path_factory.mktemp("torchrun")
    cases = {}
    for case in CASES:
        found, missing = planned_case(script, case)
        assert missing == ()
        model = case.partition(":")[0]
        cases[case] = {"model": model, "code": found.to_code(), "split": "data" in found.mesh.axes}
    (folder / "cases.json").write_text(json.dumps(cases))
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", SCRIPT, folder]
    settings = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    done = subprocess.run(command, env=settings, capture_output=True, text=True, timeout=SLOWEST_S, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads((folder / "found.json").read_text())


@pytest.mark.parametrize("case", CASES)
def test_two_processes_with_the_plans_code_train_as_one_alone(ran, case):
    found = ran[case]
    assert found["error"] == ""
    assert found["loss"] < 1e-5  # the model computes it in 32 bits
    assert found["parameter"] < 1e-6


@pytest.mark.parametrize(
    ("model", "pins", "what"),
    [
        ("llama", Megatron(pipeline=2, microbatches=2), "Pipeline: "),
        ("llama", Megatron(tensor=2, sequence_parallel=True), "Sequence over "),
        ("gpt2", Megatron(tensor=2), "neither nn.Linear nor nn.Embedding"),
        ("gpt2", Megatron(tensor=2), "several projections in one weight"),
        ("gpt2", Megatron(tensor=2), "another module uses its weight too"),
    ],
)
def test_code_that_does_not_run_as_it_stands_says_so_first_and_in_the_view(script, model, pins, what):
    found, missing = planned(script, model, pins)
    first = found.to_code().splitlines()[:7]
    assert first[1] == "# Does not run as it stands:"
    assert any(what in line for line in first[2:])
    assert found.view()["caveats"] == list(missing)


def test_weights_split_where_others_average_gradients_are_named(script):
    ops = {"*lm_head*": ("n",), "*": ("batch",)}
    found, missing = planned(script, "llama", {"mesh": (2,), "zero": 3, "ops": ops})
    assert [sentence.partition(":")[0] for sentence in missing] == ["lm_head"]
    assert "apart = {" in found.to_code()


def test_only_the_layers_that_are_split_elsewhere_are_left_out_of_sharding(script):
    one = {"model.layers.1.mlp.gate_proj.*": ("n",), "model.layers.1.mlp.up_proj.*": ("n",)}
    ops = {**one, "model.layers.1.mlp.down_proj.*": ("k",), "*": ("batch",)}
    found, _ = planned(script, "llama", {"mesh": (2,), "zero": 3, "ops": ops})
    (line,) = [line for line in found.to_code().splitlines() if line.startswith("apart = ")]
    assert '"model.layers.1.mlp.gate_proj.*"' in line
    assert "layers.*" not in line


def test_past_keys_are_switched_off_where_the_trace_did_without_them(script):
    assert "model.config.use_cache = False" in planned_case(script, "llama: data parallel")[0].to_code()
