"""A split planned from a notebook: by the verb, and by a header before it is sent."""

import json

import pytest

pytest.importorskip("torch")

from jupyter_autotrain.client import experiments
from jupyter_autotrain.client.submission import resubmit
from jupyter_autotrain.parallel.plan import Plan

MODEL = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(256, 64)
        self.layers = torch.nn.ModuleList(torch.nn.Linear(64, 64) for _ in range(6))
        self.head = torch.nn.Linear(64, 256)

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = x + torch.relu(layer(x))
        return self.head(x)

net = Net()
batches = [torch.zeros(16, 32, dtype=torch.long)]
"""


@pytest.fixture
def with_model(notebook):
    notebook.run(MODEL)[0].raise_error()
    return notebook


def test_the_verb_plans_expressions_of_the_notebook_and_shows_the_plan(with_model):
    result, shown = with_model.run("%autotrain plan net --inputs batches[0] --cluster 8xA100 --simplicity 0")
    result.raise_error()
    assert "on 8xA100" in shown
    assert "fastest" not in shown
    assert "DDP" in shown
    assert "sent bytes of a rank" in shown
    assert isinstance(with_model.value("_"), Plan)


def test_the_verb_takes_what_the_call_takes(with_model):
    words = "--mode data_parallel --search recursive_programming --memory 10GB --offload"
    result, shown = with_model.run(f'%autotrain plan net --inputs "batches[-1]" --cluster "2x4xH100" {words}')
    result.raise_error()
    plan = with_model.value("_")
    assert plan.mode == "data_parallel"
    assert plan.request.search == "recursive_programming"
    assert plan.request.limits.memory_bytes == 10e9
    assert plan.request.space.offload
    assert "2x4xH100" in shown


@pytest.mark.parametrize(
    ("words", "found", "action"),
    [
        ("net --cluster 8xA100", "No plan without inputs", "give them to %autotrain plan"),
        ("net --inputs batches[0]", "No plan without cluster", "give them to %autotrain plan"),
        ("nett --inputs batches[0] --cluster 8xA100", "'nett' raises NameError", "Run the cells that define them"),
        ("net --inputs batches[0] --cluster 8xA9000", "A9000", ""),
        ("net --inputs batches[0] --cluster 8xA100 --mode auto", "Unknown mode 'auto'", "Correct it"),
        ("net --inputs batches[0] --cluster 8xA100 --memory 1kB", "No split of the model fits", "more memory"),
        ("net --inputs batches[0] --cluster 3xA100 --mode data_parallel", "batch of 16 cannot be divided", "batch"),
        ("Net --inputs batches[0] --cluster 8xA100", "There is the class Net", "Give the model itself"),
    ],
)
def test_bad_words_are_answered_in_three_clauses(with_model, words, found, action):
    text = "\n".join(with_model.fails(f"%autotrain plan {words}"))
    assert found in text
    assert action in text


def test_a_dry_run_shows_the_plan_of_the_header_and_sends_nothing(with_model, home):
    before = len(list(experiments(home=home)))
    header = "parallel: {model: net, inputs: 'batches[0]', cluster: 2x8xH100}"
    result, shown = with_model.run(f"%%autotrain --dry-run\n{header}\n---\nreport(step=1, a=1)")
    result.raise_error()
    assert "on 2x8xH100" in shown
    assert shown.index("main.py") < shown.index("on 2x8xH100")
    assert "nothing was sent" in shown
    assert isinstance(with_model.value("_"), Plan)
    assert len(list(experiments(home=home))) == before


def test_a_cell_with_a_plan_runs_as_it_is_and_the_plan_stays_with_the_experiment(with_model, home):
    header = "parallel: {model: net, inputs: 'batches[0]', cluster: 2x8xH100}"
    result, shown = with_model.run(f"%%autotrain planned\n{header}\n---\nreport(step=1, a=1)")
    result.raise_error()
    assert "Planned: " in shown
    assert "the cell itself runs as it is written" in shown
    sent = with_model.value("_")
    assert sent.wait(timeout_s=240)
    assert sent.state == "SUCCEEDED"
    again = resubmit(home, sent.record, {})
    for experiment in (sent, again):
        kept = json.loads((home.bundle(experiment.id) / "plan.json").read_text())
        assert kept["cluster"]["device"] == "H100"
        assert kept["cost"]["step_s"] > 0
        assert "nodes" not in kept
    assert again.wait(timeout_s=240)


TRAIN = """
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
model, optimizer, loader = plan.apply(net, optimizer, batches)
for batch in loader:
    model(batch).float().mean().backward()
    optimizer.step()
report(step=1, samples=len(batch), ranks=world_size)
"""


AUTO_PARALLEL = "{workers: 2, mode: auto_parallel, model: net, inputs: 'batches[0]'}"


def ran(with_model, header):
    """Return the metrics of a cell that trains with `plan`, and what it told before it was sent."""
    result, shown = with_model.run(f"%%autotrain planned\nparallel: {header}\n---\n{TRAIN}")
    result.raise_error()
    sent = with_model.value("_")
    assert sent.wait(timeout_s=240)
    assert sent.state == "SUCCEEDED", sent.logs(1)
    return {point["name"]: point["value"] for point in sent.metrics()}, shown


@pytest.mark.long  # by default test_pipeline_in_a_cell.py runs the plan of a header on two workers
def test_a_cell_runs_the_plan_of_its_header_on_as_many_workers(with_model):
    header = "{workers: 2, mode: data_parallel, model: net, inputs: 'batches[0]'}"
    found, shown = ran(with_model, header)
    assert found == {"samples": 8, "ranks": 2}
    assert "on 2xCPU" in shown
    assert "The plan is the cell's `plan`" in shown


@pytest.mark.long  # by default the plan of this one is only made
def test_all_workers_of_the_header_have_a_part_of_a_model_that_one_would_train_as_fast(with_model):
    found, shown = ran(with_model, AUTO_PARALLEL)
    assert found["ranks"] == 2
    assert "on 2xCPU" in shown


def test_a_header_with_workers_is_planned_for_all_of_them_or_refused(with_model, home):
    result, shown = with_model.run(f"%%autotrain --dry-run\nparallel: {AUTO_PARALLEL}\n---\n{TRAIN}")
    result.raise_error()
    assert "on 2xCPU" in shown
    before = len(list(experiments(home=home)))
    header = "{workers: 2, mode: stand_alone, model: net, inputs: 'batches[0]'}"
    text = "\n".join(with_model.fails(f"%%autotrain\nparallel: {header}\n---\n{TRAIN}"))
    assert "The plan is for 1 devices (stand_alone), and the header has 2 workers." in text
    assert "Write `workers: 1`, or a mode that splits the model, such as auto_parallel." in text
    assert len(list(experiments(home=home))) == before


@pytest.fixture
def with_plan(with_model):
    setup = "import jupyter_autotrain as at\nplan = at.plan(net, batches[0], cluster='2xCPU', mode='data_parallel')"
    with_model.run(setup)[0].raise_error()
    return with_model


@pytest.mark.long  # by default test_plans_are_measured.py runs a plan of the notebook
def test_a_cell_runs_the_plan_that_the_notebook_has(with_plan):
    found, shown = ran(with_plan, "{workers: 2}")
    assert found == {"samples": 8, "ranks": 2}
    assert "The plan is the cell's `plan`" in shown


def test_a_header_that_contradicts_the_plan_of_the_notebook_is_refused(with_plan):
    shown = with_plan.run(f"%%autotrain --dry-run\nparallel: {{workers: 2}}\n---\n{TRAIN}")[1]
    assert "DDP over 2" in shown
    for header, told in (
        ("{workers: 3}", "The notebook's plan is for 2 devices, and the header has 3 workers."),
        ("{workers: 2, model: net, inputs: 'batches[0]'}", "its header makes one, and the notebook has another"),
        ("{workers: 2, mode: data_parallel}", "No plan without model and inputs"),
    ):
        assert told in "\n".join(with_plan.fails(f"%%autotrain\nparallel: {header}\n---\n{TRAIN}"))


def test_a_number_of_workers_alone_needs_a_plan_in_the_notebook(with_model):
    text = "\n".join(with_model.fails(f"%%autotrain\nparallel: {{workers: 2}}\n---\n{TRAIN}"))
    assert "the notebook has no plan named `plan`" in text


def test_a_plan_that_is_not_executed_is_refused_before_anything_is_sent(with_model, home):
    before = len(list(experiments(home=home)))
    header = "{workers: 4, mesh: {pp: 4}, model: net, inputs: 'batches[0]'}"
    text = "\n".join(with_model.fails(f"%%autotrain\nparallel: {header}\n---\n{TRAIN}"))
    assert "The plan has what is not executed: 4 pipeline stages" in text
    assert len(list(experiments(home=home))) == before


@pytest.mark.parametrize("flags", ["--dry-run", ""])
def test_a_header_that_says_too_little_is_told_what_is_missing(with_model, home, flags):
    before = len(list(experiments(home=home)))
    text = "\n".join(with_model.fails(f"%%autotrain {flags}\nparallel: {{model: net}}\n---\nreport(step=1, a=1)"))
    assert "No plan without inputs and cluster" in text
    assert len(list(experiments(home=home))) == before
