"""The torch calls of a plan: they run, on a pretended process group, and do to the weights what the plan says."""

import ast
import inspect

import pytest

torch = pytest.importorskip("torch")

from torch.distributed import destroy_process_group, init_process_group  # noqa: E402 - after the check for torch
from torch.testing._internal.distributed.fake_pg import FakeStore  # noqa: E402 - after the check for torch

from jupyter_autotrain.errors import MissingExtraError  # noqa: E402 - after the check for torch
from jupyter_autotrain.parallel import api  # noqa: E402 - after the check for torch
from jupyter_autotrain.parallel.apply import layouts  # noqa: E402 - after the check for torch
from jupyter_autotrain.parallel.cost.memory import Recompute, ZeroLevel  # noqa: E402 - after the check for torch
from jupyter_autotrain.parallel.plan import Megatron  # noqa: E402 - after the check for torch
from jupyter_autotrain.parallel.plan.code_parts import tables  # noqa: E402 - after the check for torch
from jupyter_autotrain.parallel.plan.modules import ModuleSharding  # noqa: E402 - after the check for torch
from tests.example_graphs import gpt  # noqa: E402 - after the check for torch
from tests.parallel import training  # noqa: E402 - after the check for torch


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.up = torch.nn.Linear(width, 4 * width, bias=False)
        self.down = torch.nn.Linear(4 * width, width, bias=False)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


class Net(torch.nn.Module):
    def __init__(self, width=64, layers=4):
        super().__init__()
        self.embed = torch.nn.Embedding(256, width)
        self.layers = torch.nn.ModuleList(Block(width) for _ in range(layers))
        self.head = torch.nn.Linear(width, 256, bias=False)

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


@pytest.fixture
def ranks():
    """Yield a process group of eight of which seven are pretended."""
    init_process_group("fake", store=FakeStore(), rank=0, world_size=8)
    yield 8
    destroy_process_group()


def planned(pins, **words):
    ids = torch.zeros(16, 32, dtype=torch.long)
    return api.plan(Net(), ids, "8xA100", pins=pins, search="recursive_programming", **words)


def run(code, model=None):
    """Return the names that the code leaves, on the CPU."""
    names = {"model": model or Net(), "loss_fn": torch.nn.functional.cross_entropy}
    exec(compile(code if "def spread" in code else code.replace('"cuda"', '"cpu"'), "plan", "exec"), names)
    if "spread" in names:
        names["model"] = names["spread"](names["model"])
    return names


def test_code_of_shared_layers_holds_the_interpreters_own_functions_and_no_others(ranks):
    pytest.importorskip("transformers")
    words = {"pins": Megatron(tensor=2, zero=3, sequence_parallel=True), "search": "recursive_programming"}
    code = api.plan(training.llama(), training.example("llama"), "8xA100", **words).to_code()
    defined = [node.name for node in ast.parse(code).body if isinstance(node, ast.FunctionDef)]
    assert len(set(defined)) == len(defined)
    assert inspect.getsource(layouts.moved) in code
    assert "jupyter_autotrain" not in code
    assert "recompute" not in defined
    layer = run(code, training.llama())["model"].model.layers[1].mlp
    assert layer.up_proj.weight.device_mesh.ndim == 2
    assert [str(p) for p in layer.down_proj.weight.placements] == ["S(0)", "S(1)"]


@pytest.mark.parametrize(("zero", "free"), [(2, False), (3, True)])
def test_sharded_states_become_fully_shard(ranks, zero, free):
    code = planned({"zero": zero}, mode="data_parallel").to_code()
    model = run(code)["model"]
    assert f"reshard_after_forward={free}" in code
    assert [str(p) for p in model.layers[1].up.weight.placements] == ["S(0)"]


def test_a_table_on_the_host_is_looked_up_and_updated_there():
    embed = ModuleSharding(
        "embed", (0,), (), ZeroLevel.NONE, Recompute.NONE, 0, 256 * 64, offload=True, host_table=True
    )
    names = run(f"import torch\n{tables([embed])}")
    model = names["model"]
    before = names["model"].embed.weight.detach().clone()
    model(torch.zeros(16, 32, dtype=torch.long)).sum().backward()
    names["tables_optimizer"].step()
    changed = (model.embed.weight != before).any(dim=1)
    assert changed.nonzero().flatten().tolist() == [0]


def test_recompute_wraps_the_layers_that_do(ranks):
    code = planned({"recompute": "full", "zero": 3}, mode="data_parallel").to_code()
    model = run(code)["model"]
    seen = []
    model.layers[1].up.register_forward_hook(lambda *_: seen.append(1))
    model(torch.zeros(16, 32, dtype=torch.long)).sum().backward()
    assert len(seen) == 2


def test_stages_keep_their_own_layers(ranks):
    code = planned({"stages": 2, "microbatches": 4, "mesh": (4,), "ops": {"*": (None,)}}).to_code()
    names = run(code)
    kinds = [isinstance(layer, torch.nn.Identity) for layer in names["model"].layers]
    assert sorted(kinds) == kinds
    assert any(kinds)
    assert not all(kinds)
    assert "Schedule1F1B(part, n_microbatches=4" in code


@pytest.mark.parametrize(
    "cluster",
    ["1xH100", "6xA100", "2x4xH100", "4xH100+4xA100", pytest.param("pod(2x8xNNP-T1000, ring)", marks=pytest.mark.long)],
)
def test_every_plan_has_code_that_parses(cluster):
    graph = gpt(width=256, layers=6, heads=8, sequence=128, batch=48, vocabulary=1024)
    found = api.plan(
        graph, None, cluster, memory_limit="80MB" if cluster == "2x4xH100" else None, search="recursive_programming"
    )
    ast.parse(found.to_code())


def test_planning_leaves_the_model_as_it_was():
    net = Net().eval()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    found = api.plan(net, (torch.zeros(8, 16, dtype=torch.long),), "8xA100", search="recursive_programming")
    assert not net.training
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    assert found.trace_s > 0


def test_without_torch_the_pip_line_is_given(monkeypatch):
    def absent(name):
        raise ModuleNotFoundError("No module named 'torch'", name="torch")

    monkeypatch.setattr(api, "import_module", absent)
    with pytest.raises(MissingExtraError, match=r"pip install 'jupyter-autotrain\[parallel\]'"):
        api.plan(Net(), torch.zeros(1, 1, dtype=torch.long), "8xA100")


def test_a_model_without_inputs_is_asked_for_them():
    with pytest.raises(api.PlanError, match="no example inputs"):
        api.plan(Net(), None, "8xA100")


def test_layers_of_a_model_that_is_a_list_itself_are_named_as_its_parts(ranks):
    model = torch.nn.Sequential(*(Block(64) for _ in range(4)))
    found = api.plan(model, torch.zeros(16, 32, 64), "8xA100", pins={"zero": 3}, search="recursive_programming")
    text = found.to_code()
    ast.parse(text)
    assert 'for path in map("{}".format, range(0, 4)):' in text
