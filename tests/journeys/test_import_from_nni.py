"""An experiment of NNI runs unmodified: its file, its trial code, its search space."""

from __future__ import annotations

from pathlib import Path

from jupyter_autotrain import attach

TRIAL = """\
import argparse
import logging

import nni
from nni.utils import merge_parameter

import model

logger = logging.getLogger("mnist")


def main(args):
    best = model.accuracy(args["lr"], args["width"])
    for epoch in range(args["epochs"]):
        nni.report_intermediate_result(best * (epoch + 1) / args["epochs"])
    nni.report_final_result({"default": best, "width": args["width"]})
    print(nni.get_experiment_id() != "STANDALONE", nni.get_sequence_id())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--width", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=2)
    main(vars(merge_parameter(parser.parse_args(), nni.get_next_parameter())))
"""
FILE = """\
searchSpace:
  lr: {_type: choice, _value: [0.25, 0.5]}
  width: {_type: choice, _value: [1, 2]}
trialCommand: COMMAND
trialConcurrency: 2
maxTrialNumber: 9
tuner: {name: GridSearch, classArgs: {optimize_mode: maximize}}
trainingService: {platform: local}
"""


def run_file(notebook, name, command):
    folder = Path(name).absolute()
    folder.mkdir()
    (folder / "mnist.py").write_text(TRIAL)
    (folder / "model.py").write_text("def accuracy(lr, width):\n    return lr * width\n")
    (folder / "config.yml").write_text(FILE.replace("COMMAND", command))
    result, shown = notebook.run(f"%autotrain import {folder}/config.yml --name {name}")
    assert result.success, shown
    experiment = attach(name)
    assert experiment.wait(timeout_s=300), experiment.why()
    return experiment


def test_trial_code_of_nni_runs_unmodified_by_its_experiment_file(notebook):
    experiment = run_file(notebook, "direct", "python3 mnist.py --epochs 3")
    assert experiment.state == "SUCCEEDED", experiment.why()
    assert sorted(trial.value for trial in experiment.trials) == [0.25, 0.5, 0.5, 1.0]
    values = [row["value"] for row in experiment.metrics() if row["number"] == 1 and row["name"] == "default"]
    assert len(values) == 4
    assert "True 0" in experiment.logs(1)


def test_a_command_for_the_shell_reports_from_its_own_process(notebook):
    experiment = run_file(notebook, "shell", "echo begun && python3 mnist.py --epochs 1")
    assert experiment.state == "SUCCEEDED", experiment.why()
    assert sorted(trial.value for trial in experiment.trials) == [0.25, 0.5, 0.5, 1.0]


def test_an_imported_experiment_is_the_newest_of_its_notebook_also_beside_one_of_its_name(notebook):
    notebook.run("%%autotrain same --wait\nobjective: maximize acc\n---\nreport(acc=0.125)")
    imported = run_file(notebook, "same", "python3 mnist.py --epochs 1")
    assert imported.state == "SUCCEEDED", imported.why()
    assert attach("_").id == imported.id
    assert len(imported.trials) == 4


OTHERS = """\
%%autotrain others --wait
objective: maximize acc
search: {lr: [0.5]}
---
import wandb
from ray import tune
with wandb.init(project="x", config={"lr": 1, "depth": 2}) as run:
    assert (wandb.config.lr, run.config["depth"]) == (0.5, 2)
    for epoch in range(3):
        wandb.log({"acc": epoch / 4, "note": "kept out"})
    tune.report({"acc": 0.75, "training_iteration": 9})
"""


def test_calls_of_wandb_and_ray_tune_report_where_these_are_not_installed(notebook):
    result, shown = notebook.run(OTHERS)
    assert result.success, shown
    experiment = attach("others")
    assert experiment.state == "SUCCEEDED", experiment.why()
    assert [(row["step"], row["value"]) for row in experiment.metrics()] == [(0, 0.0), (1, 0.25), (2, 0.5), (9, 0.75)]


OPTUNA = """\
%%autotrain pruned --wait
objective: maximize acc
search: {lr: [0.5, 0.25], net: {choice: [{_name: a, k: [1]}, b]}}
early_stop: {rule: threshold, lower: 0.3}
---
import time
class TrialPruned(Exception): pass
def objective(trial):
    lr = trial.suggest_float("lr", 0.01, 1, log=True)
    assert trial.suggest_categorical("net", ["a", "b"]) in ("b", {"_name": "a", "k": 1})
    for step in range(1000):
        trial.report(lr, step)
        if trial.should_prune():
            raise TrialPruned()
        if lr > 0.3 and step == 3:
            return lr
        time.sleep(0.02)
objective(trial)
"""


def test_an_objective_of_optuna_gets_its_parameters_reports_and_is_pruned(notebook):
    result, shown = notebook.run(OPTUNA)
    assert result.success, shown
    trials = attach("pruned").trials
    assert sorted((str(trial.state), trial.value) for trial in trials) == [
        ("EARLY_STOPPED", 0.25), ("EARLY_STOPPED", 0.25), ("SUCCEEDED", 0.5), ("SUCCEEDED", 0.5),
    ], [trial.reason for trial in trials]  # fmt: skip


def test_a_sampler_that_there_is_not_is_told_before_anything_is_sent(notebook):
    head = "%%autotrain\nobjective: maximize a\ntuner: {optuna: GPSamplr}\nsearch: {x: 'uniform(0, 1)'}\n---\n"
    assert "Did you mean GPSampler?" in "".join(notebook.fails(head + "report(a=x)"))
