"""Pipeline stages in a cell: whole batches, the loss on every rank, and the losses of one worker."""

from importlib.util import find_spec

import pytest

from tests.journeys.test_rehearsed_cells import STAGES

pytest.importorskip("torch")

OWN_STEPS = """
torch.manual_seed(0)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
train = plan.parallelize(model, optimizer=optimizer)
for step in range(3):
    report(step=step, all_ranks=True, loss=train.step(batch).item())
"""
OWN_HERE = """
torch.manual_seed(0)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
alone = []
for step in range(3):
    optimizer.zero_grad()
    loss = model(**batch)
    loss.backward()
    optimizer.step()
    alone.append(loss.item())
"""
MODEL = """
import torch
from transformers import GPT2Config, GPT2LMHeadModel

quiet = {"attn_pdrop": 0.0, "resid_pdrop": 0.0, "embd_pdrop": 0.0}
sizes = {"n_layer": 2, "n_embd": 32, "n_head": 4, "n_positions": 8, "vocab_size": 96, "bos_token_id": 1}

def network():
    torch.manual_seed(0)
    return GPT2LMHeadModel(GPT2Config(**sizes, **quiet, eos_token_id=2))

net = network()
made = torch.Generator().manual_seed(0)
ids = torch.randint(3, 96, (5, 16, 8), generator=made)
batch = {"input_ids": ids[0], "labels": ids[0]}
"""

STEPS = """
model = network()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
train = plan.parallelize(model, optimizer=optimizer)
resumed = train.load_checkpoint(checkpoint.path)
for step in range(resumed or 0, 5):
    loss = train.step({"input_ids": ids[step], "labels": ids[step]})
    report(step=step, all_ranks=True, loss=loss.item())
    train.save_checkpoint(checkpoint.path, step=step + 1)
"""
HELD = """
for number, layer in enumerate(model.transformer.h):
    weight = dict(layer.named_parameters()).get("mlp.c_fc.weight")
    if weight is not None and 2 * weight.to_local().numel() == weight.numel():
        print("holds layer", number, "in halves")
"""
FAIL = """
import os, signal

def fail(*_):
    os.kill(os.getpid(), signal.SIGKILL)
"""
AT_STEP_3 = """
    if step == 3 and rank == 1 and resumed is None:
        model.transformer.h[1].mlp.register_forward_hook(fail)
"""
KILLED = FAIL + STEPS.replace("\n    loss = ", f"{AT_STEP_3}    loss = ")


@pytest.fixture
def with_model(notebook):
    if find_spec("transformers") is None:
        pytest.skip("transformers is not installed")
    notebook.run(MODEL)[0].raise_error()
    return notebook


def sent(notebook, name, parallel, cell=STEPS, more=""):
    words = (
        f"parallel: {{{parallel}, model: net, inputs: batch}}\nresources: {{cpus: 0.5}}\nobjective: min loss\n{more}"
    )
    notebook.run(f"%%autotrain {name}\n{words}\n---\n{cell}")[0].raise_error()
    experiment = notebook.value("_")
    assert experiment.wait(timeout_s=600)
    assert experiment.state == "SUCCEEDED", experiment.why()
    return experiment


def losses(experiment):
    return [point["value"] for point in experiment.metrics(["loss"])]


def test_two_stages_of_a_cell_have_the_losses_of_the_loop_in_the_notebook(notebook):
    notebook.run(STAGES)[0].raise_error()
    notebook.run(OWN_HERE)[0].raise_error()
    together = losses(sent(notebook, "two-stages", "workers: 2, mesh: {pipeline: 2}", OWN_STEPS))
    assert len(together) == 3
    assert together == pytest.approx(notebook.value("alone"), abs=1e-5)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_stages_of_a_cell_that_share_their_layers_have_the_losses_of_one_worker(with_model):
    alone = losses(sent(with_model, "alone", "workers: 1"))
    together = losses(sent(with_model, "together", "workers: 4, mesh: {tensor: 2, pipeline: 2}", STEPS + HELD))
    assert len(alone) == 5
    assert together == pytest.approx(alone, abs=1e-5)
    logs = [with_model.value("_").logs(1, rank=rank) for rank in range(4)]
    assert all(f"holds layer {rank // 2} in halves" in text for rank, text in enumerate(logs)), logs


@pytest.mark.long
def test_a_stage_that_is_killed_in_a_step_is_named_and_the_next_attempt_goes_on(with_model):
    alone = losses(sent(with_model, "alone", "workers: 1"))
    experiment = sent(with_model, "resumed", "workers: 2, mesh: {pipeline: 2}", KILLED, "retries: 1")
    told = [change.reason for change in experiment.store.state_changes(experiment.id) if change.attempt == 1]
    assert any(reason.startswith("Rank 1 failed: Killed by signal 9") for reason in told), told
    assert losses(experiment) == pytest.approx(alone, abs=1e-5)


def test_a_loop_over_stages_is_refused_before_anything_is_sent_with_the_lines_that_run_them(notebook):
    notebook.run(STAGES)[0].raise_error()
    cell = "loader = plan.apply(net, torch.optim.SGD(net.parameters(), lr=0.1), [batch])[2]\nreport(step=1, a=1)"
    header = "parallel: {workers: 2, mesh: {pp: 2}, model: net, inputs: batch}"
    text = "\n".join(notebook.fails(f"%%autotrain\n{header}\n---\n{cell}"))
    assert "The plan has 2 pipeline stages" in text
    assert "train = plan.parallelize(model, loss_fn, optimizer=optimizer)" in text
    assert "loss = train.step(batch)" in text
