"""Cells without a `report`: loops of libraries report, and so do calls of other loggers, as the library keeps it."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

SCIKIT_LEARN = """\
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.neural_network import MLPClassifier
X, y = load_digits(return_X_y=True)
model = MLPClassifier((8,), max_iter=4, random_state=0, early_stopping=True).fit(X[:300], y[:300])
accuracy = model.score(X[300:], y[300:])
folds = cross_val_score(LogisticRegression(max_iter=20), X[:200], y[:200], cv=3)
history = {
    "loss": list(enumerate(model.loss_curve_)),
    "validation_score": list(enumerate(model.validation_scores_)),
    "score": [(0, accuracy)],
    "test_score": list(enumerate(folds)),
}"""
BOOSTING = """\
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor
from sklearn.model_selection import GridSearchCV
X, y = load_diabetes(return_X_y=True)
boosted = GradientBoostingRegressor(n_estimators=5, random_state=0).fit(X, y)
binned = HistGradientBoostingRegressor(max_iter=4, early_stopping=True, random_state=0).fit(X, y)
found = GridSearchCV(boosted, {"max_depth": [1, 2]}, cv=2).fit(X, y)
history = {
    "train_score": list(enumerate([*boosted.train_score_, *binned.train_score_])),
    "validation_score": list(enumerate(binned.validation_score_, 5)),  # goes on after the other one's train_score
    "mean_test_score": list(enumerate(found.cv_results_["mean_test_score"])),
    "best_score": [(0, found.best_score_)],
}"""
TRANSFORMERS = """\
import torch
from transformers import Trainer, TrainingArguments
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 2)
    def forward(self, x, labels=None):
        out = self.linear(x)
        return {"loss": torch.nn.functional.cross_entropy(out, labels), "logits": out}
torch.manual_seed(0)
rows = [{"x": torch.randn(4), "labels": torch.tensor(i % 2)} for i in range(32)]
options = TrainingArguments("out", num_train_epochs=2, logging_steps=2, eval_strategy="epoch", report_to=[], seed=0,
    per_device_train_batch_size=8, use_cpu=True, save_strategy="no", disable_tqdm=True)
trainer = Trainer(Net(), options, train_dataset=rows, eval_dataset=rows)
trainer.train()
history = {}
for entry in trainer.state.log_history:
    for name, value in entry.items():
        if name != "step":
            history.setdefault(name, []).append((entry["step"], value))"""
XGBOOST = """\
import numpy as np, xgboost
from xgboost import XGBClassifier
X = np.random.default_rng(0).normal(size=(200, 4)); y = (X[:, 0] > 0).astype(int)
model = XGBClassifier(n_estimators=5, n_jobs=1).fit(X, y, eval_set=[(X, y)], verbose=False)
folds = xgboost.cv({"objective": "binary:logistic", "nthread": 1}, xgboost.DMatrix(X, y), 3, nfold=2)
history = {
    "validation_0-logloss": list(enumerate(model.evals_result()["validation_0"]["logloss"])),
    "test-logloss": list(enumerate(folds["test-logloss-mean"])),
    "test-logloss-std": list(enumerate(folds["test-logloss-std"])),
}"""
KERAS = """\
import os
os.environ["KERAS_BACKEND"] = "torch"
import keras, numpy as np
X = np.random.default_rng(0).normal(size=(64, 4)); y = (X[:, 0] > 0).astype(int)
keras.utils.set_random_seed(0)
model = keras.Sequential([keras.layers.Dense(1, activation="sigmoid")])
model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
kept = [model.fit(X, y, epochs=n, validation_split=0.25, verbose=0).history for n in (3, 2)]
history = {name: list(enumerate(kept[0][name] + kept[1][name])) for name in kept[0]}"""
LIGHTNING = """\
import csv, glob, torch
import lightning.pytorch as pl
from lightning.pytorch.loggers import CSVLogger
class Net(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 1)
    def training_step(self, batch, index):
        loss = self.linear(batch[0]).pow(2).mean()
        self.log("loss", loss, on_step=True, on_epoch=True)
        return loss
    def validation_step(self, batch, index):
        self.log("val_loss", self.linear(batch[0]).pow(2).mean())
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)
torch.manual_seed(0)
data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(16, 4)), batch_size=4)
trainer = pl.Trainer(max_epochs=2, log_every_n_steps=2, logger=CSVLogger("logs"), accelerator="cpu",
    enable_progress_bar=False, enable_model_summary=False)
trainer.fit(Net(), data, data)
history = {}
for row in csv.DictReader(open(glob.glob("logs/**/metrics.csv", recursive=True)[0])):
    for name, text in row.items():
        if text and name not in ("step", "epoch"):
            history.setdefault(name, []).append((int(row["step"]), float(text)))"""
LOGGED = """\
values = [0.5, 0.25, 0.125]
for step, value in enumerate(values):
    log("loss", value, step)
history = {"loss": list(enumerate(values))}"""
TENSORBOARD = f"""\
from MODULE import SummaryWriter
writer = SummaryWriter("logs")
log = writer.add_scalar
{LOGGED}
writer.add_scalars("both", {{"a": 1.0, "b": 2.0}}, 7)
writer.close()
history.update({{"both/a": [(7, 1.0)], "both/b": [(7, 2.0)]}})"""
WANDB = """\
import wandb
run = wandb.init(mode="MODE", dir=".")
for value in (0.5, 0.25):
    wandb.log({"loss": value, "note": "text", "inner": {"a": 1.0}}, commit=False)
    run.log({"late": value})
wandb.finish()
both = [(0, 0.5), (1, 0.25)]
history = {"loss": both, "late": both, "inner.a": [(0, 1.0), (1, 1.0)]}"""
TRACKIO = """\
import os
os.environ["TRACKIO_DIR"] = os.path.abspath("trackio")
import trackio
trackio.init(project="p", embed=False)
for value in (0.5, 0.25):
    trackio.log({"loss": value})
trackio.finish()
history = {"loss": [(0, 0.5), (1, 0.25)]}"""
MLFLOW = f"""\
import mlflow
mlflow.set_tracking_uri("sqlite:///mlflow.db")
log = mlflow.log_metric
with mlflow.start_run() as run:
    {LOGGED.replace(chr(10), chr(10) + "    ")}
    mlflow.log_metrics({{"a": 1.0}}, step=5)
kept = mlflow.tracking.MlflowClient().get_metric_history(run.info.run_id, "loss")
assert [(one.step, one.value) for one in kept] == history["loss"]
history["a"] = [(5, 1.0)]"""
LIBRARIES = {
    "sklearn.ensemble": BOOSTING,
    "transformers": TRANSFORMERS,
    "xgboost": XGBOOST,
    "keras": KERAS,
    "lightning": LIGHTNING,
    "tensorboardX": TENSORBOARD.replace("MODULE", "tensorboardX"),
    "tensorboard": TENSORBOARD.replace("MODULE", "torch.utils.tensorboard"),
    "wandb": WANDB.replace("MODE", "offline"),
    "wandb.sdk": WANDB.replace("MODE", "disabled"),
    "trackio": TRACKIO,
    "mlflow": MLFLOW,
}


WRITER = """\
class SummaryWriter:
    def __init__(self):
        self.kept = []
    def add_scalar(self, tag, scalar_value, global_step=None):
        self.kept.append((tag, scalar_value, global_step))"""
MLFLOW_DOUBLE = "logged = []\ndef log_metric(key, value, step=None):\n    logged.append((key, value, step))"
CALLER = "def log(writer):\n    writer.add_scalar('train/loss', 9.0, 9)"


def reported(experiment, trial):
    curves = {}
    for row in experiment.metrics():
        if row["number"] == trial:
            curves.setdefault(row["name"], []).append((row["step"], row["value"]))
    return curves


def test_what_scikit_learn_keeps_is_reported_in_cold_and_warm_trials(notebook):
    notebook.run(
        f"%%autotrain by-itself --wait\nobjective: maximize score\ntrials: 3\nreturns: [history]\n---\n{SCIKIT_LEARN}"
    )
    experiment = notebook.value("_")
    assert [trial.reason for trial in experiment.trials] == [""] * 3
    for trial in (1, 3):  # the last one begins with the imports made
        assert reported(experiment, trial) == experiment.load("history", trial=trial)
    said = experiment.logs(trial=1, stream="stderr")
    assert said.count("scikit-learn reports its metrics by itself; `autolog: false` in the header turns this off") == 1


def test_a_trial_whose_library_reports_is_stopped_early(notebook):
    cell = """\
%%autotrain early --wait
objective: minimize loss
early_stop: {rule: threshold, upper: 0.5}
---
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier
model = MLPClassifier((2,), max_iter=10**9, tol=0.0, n_iter_no_change=10**9, learning_rate_init=1e-9)
model.fit(*load_digits(return_X_y=True))"""
    notebook.run(cell)
    (trial,) = notebook.value("_").trials
    assert (trial.state, trial.value > 0.5) == ("EARLY_STOPPED", True), trial.reason


def test_what_the_cell_reports_itself_goes_before_and_autolog_false_turns_it_off(notebook):
    ending = "report(step=0, loss=7.0)\nreport(step=1, loss=model.coefs_[0].sum())"
    notebook.run(f"%%autotrain mixed --wait\n---\n{SCIKIT_LEARN}\n{ending}")
    mixed = reported(notebook.value("_"), 1)
    assert set(mixed) == {"loss", "validation_score", "score", "test_score"}
    notebook.run(f"%%autotrain off --wait\nautolog: false\n---\n{SCIKIT_LEARN}\n{ending}")
    assert reported(notebook.value("_"), 1) == {"loss": mixed["loss"]}  # the results are the same, too
    assert mixed["loss"][0] == (0, 7.0)
    assert len(mixed["loss"]) == 2


def write_package(folder, **modules):
    """Write modules by their dotted names, as an installed library would have them."""
    for name, text in modules.items():
        path = folder.joinpath(*name.split(".")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        for parent in path.relative_to(folder).parents[:-1]:
            (folder / parent / "__init__.py").touch()


def test_of_several_ranks_the_first_one_reports(notebook, tmp_path):
    write_package(tmp_path, **{"tensorboardX.writer": WRITER})
    cell = """\
import os
from tensorboardX.writer import SummaryWriter
SummaryWriter().add_scalar("score", 1.0 - int(os.environ["RANK"]), global_step=0)"""
    notebook.run(f"%%autotrain ranks --wait\nresources: {{workers_per_node: 2}}\n---\n{cell}")
    experiment = notebook.value("_")
    assert reported(experiment, 1) == {"score": [(0, 1.0)]}
    assert experiment.warnings() == []


def test_an_objective_that_a_library_may_report_is_not_refused_and_a_slip_in_a_report_still_is(notebook):
    assert notebook.run("%%autotrain --check\nobjective: minimize loss\n---\nfrom sklearn import svm")[0].success
    lines = notebook.fails(
        "%%autotrain --check\nobjective: minimize loss\n---\nfrom sklearn import svm\nreport(los=1.0)"
    )
    assert "Did you mean 'los'?" in "\n".join(lines)
    lines = notebook.fails(
        "%%autotrain --check\nautolog: false\nobjective: minimize loss\n---\nfrom sklearn import svm"
    )
    assert "calls report(...) nowhere" in "\n".join(lines)


def test_what_is_logged_elsewhere_is_reported_unless_a_library_that_reports_by_itself_logs_it(notebook, tmp_path):
    modules = {"tensorboardX.writer": WRITER, "mlflow.tracking.fluent": MLFLOW_DOUBLE, "keras.log": CALLER}
    write_package(tmp_path, **modules)
    (tmp_path / "mlflow" / "__init__.py").write_text("from mlflow.tracking.fluent import log_metric")
    cell = """\
from tensorboardX.writer import SummaryWriter
import keras.log, mlflow
from mlflow.tracking.fluent import logged
writer = SummaryWriter()
for step in (3, 5):
    writer.add_scalar("loss", 1 / step, global_step=step)
    mlflow.log_metric("acc", step)
keras.log.log(writer)
assert writer.kept == [("loss", 1 / 3, 3), ("loss", 1 / 5, 5), ("train/loss", 9.0, 9)]
assert logged == [("acc", 3, None), ("acc", 5, None)]"""
    notebook.run(f"%%autotrain logged --wait\n---\n{cell}")
    experiment = notebook.value("_")
    assert experiment.state == "SUCCEEDED", experiment.logs(stream="stderr")
    assert reported(experiment, 1) == {"loss": [(3, 1 / 3), (5, 1 / 5)], "acc": [(0, 3), (1, 5)]}
    said = experiment.logs(stream="stderr")
    assert ("tensorboard reports" in said, "mlflow reports" in said) == (True, True)


@pytest.mark.long
@pytest.mark.parametrize("library", LIBRARIES)
def test_the_values_of_each_library_are_those_that_it_keeps(notebook, library):
    module = library.partition(".")[0]
    if find_spec(module) is None:
        pytest.skip(f"{module} is not installed")
    name = library.replace(".", "-").lower()
    result, shown = notebook.run(f"%%autotrain of-{name} --wait\nreturns: [history]\n---\n{LIBRARIES[library]}")
    assert result.success, shown
    experiment = notebook.value("_")
    assert experiment.state == "SUCCEEDED", experiment.logs(stream="stderr")
    found = reported(experiment, 1)
    history = experiment.load("history")
    for metric, curve in history.items():
        assert found.get(metric) == [(step, pytest.approx(value, rel=1e-6)) for step, value in curve], metric
    assert set(found) - set(history) <= {"epoch", "train-logloss", "train-logloss-std"}, found
