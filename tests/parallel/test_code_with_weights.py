"""The code of plans that reads weights: each rank reads its part, and the ranks train as one process."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from jupyter_autotrain.errors import PlanError  # noqa: E402 - after the check for torch
from jupyter_autotrain.parallel import api  # noqa: E402 - after the check for torch
from jupyter_autotrain.parallel.plan import Megatron  # noqa: E402 - after the check for torch
from tests.matrices import long_besides  # noqa: E402 - after the check for torch
from tests.parallel import loading_code, run_plan_code  # noqa: E402 - after the check for torch

PINS = {
    "DDP": {"zero": 0},
    "FSDP": {"zero": 3, "recompute": "full"},
    "tensor": Megatron(tensor=2),
    "FSDP, tensor": Megatron(tensor=2, zero=3),
    "1F1B": Megatron(pipeline=2, microbatches=2),
    "expert": {"mesh": (2,), "zero": 0, "ops": {"*.experts.experts": ("e",), "*": ("batch",)}},
}
CASES = [("phi3", "tensor", 2), ("phi3", "FSDP, tensor", 4), ("gpt2 of 4", "1F1B", 2), ("mixtral", "expert", 2)]
CASES += [("llama", "DDP", 2), ("llama", "FSDP", 2), ("gpt2", "tensor", 2), ("gpt2", "DDP", 1)]


def planned(model, row, count):
    words = {"mode": "data_parallel"} if row in {"DDP", "FSDP"} else {}
    words |= {"search": "recursive_programming", "pins": PINS[row] if count > 1 else None}
    return api.plan(loading_code.MODELS[model](), run_plan_code.batch_of(), f"{count}xA100", **words)


@pytest.mark.parametrize("case", long_besides(CASES[:1], CASES), ids=lambda case: "{}-{}-{}".format(*case))
def test_ranks_that_read_their_weights_by_the_plans_code_train_as_one_process(ranks, tmp_path, case):
    model, _, count = case
    loading_code.saved(model, tmp_path)
    code = planned(*case).to_code(weights=tmp_path)
    assert f'WEIGHTS = "{tmp_path}"' in code
    (tmp_path / "plan_code.py").write_text(code)
    found = ranks.run(count, loading_code.compare, model=model, folder=tmp_path)[0]
    assert found["loss"] < 1e-5
    assert found["parameter"] < 1e-5


@pytest.mark.long
def test_code_that_reads_weights_refuses_a_model_that_has_values(ranks, tmp_path):
    loading_code.saved("llama", tmp_path)
    (tmp_path / "plan_code.py").write_text(planned("llama", "FSDP", 2).to_code(weights=tmp_path))
    for text in ranks.run(2, loading_code.refused, model="llama", folder=tmp_path):
        assert "LlamaForCausalLM has values already" in text


@pytest.mark.parametrize("tool", ["accelerate", ""])
def test_weights_are_for_code_that_runs(tool):
    pins = {"mesh": (2,), "ops": {"*self_attn.attention": ("h",), "*": (None,)}}
    plan = api.plan(run_plan_code.llama(), run_plan_code.batch_of(), "2xA100", pins=pins)
    with pytest.raises(PlanError, match="Weights are given for"):
        plan.to_code(tool, weights="folder")
