"""The verb `export`: a trial as a script that runs alone, or as the objects of a cluster for kubectl."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import cast

from jupyter_autotrain import backends, capture
from jupyter_autotrain.client import Experiment
from jupyter_autotrain.client.trial_selection import trial_or_best
from jupyter_autotrain.core.attempt import trial_spec
from jupyter_autotrain.core.backend import BackendContext
from jupyter_autotrain.core.backend_check import ManifestBackend
from jupyter_autotrain.core.json import JsonObject, to_json
from jupyter_autotrain.core.profile import BackendChoice
from jupyter_autotrain.core.records import TrialRecord
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.verbs.backend_checks import profile_of
from jupyter_autotrain.verbs.context import CommandContext
from jupyter_autotrain.worker import environment


def export(command: CommandContext, arguments: argparse.Namespace) -> None:
    """Write a script that reports the same metrics without the notebook and without this package, or manifests."""
    experiment = command.find(arguments.experiment)
    trial = trial_or_best(experiment.store, experiment.record, arguments.trial)
    if arguments.backend and not arguments.yaml:
        raise AutotrainError(
            "export: --backend without --yaml.",
            "A script runs anywhere; manifests are those of a backend.",
            f"Run: %autotrain export {experiment.name} --yaml --backend {arguments.backend}",
        )
    if arguments.yaml:
        text = _manifests(command, experiment, trial, arguments.backend)
    else:
        text = _script(command, experiment, trial)
    name = _written(command, experiment, arguments.output, "yaml" if arguments.yaml else "py", text)
    run = "kubectl apply -f" if arguments.yaml else "python"
    command.write(f"Wrote {name} (trial {trial.number}). Run it: {run} {name}\n")


def _script(command: CommandContext, experiment: Experiment, trial: TrialRecord) -> str:
    ran = trial_spec(experiment.record.spec, trial)
    variables = environment.complete({"directory": "", **cast("JsonObject", to_json(ran))}, {})
    return capture.export_script(
        command.home.bundle(experiment.id),
        ran.params,
        seed=ran.seed,
        hash_seed=variables["PYTHONHASHSEED"],
        sources=experiment.record.spec.data,
    )


def _manifests(command: CommandContext, experiment: Experiment, trial: TrialRecord, backend_name: str | None) -> str:
    spec = experiment.record.spec
    choice = spec.choice(trial.placement.backend)
    if backend_name:
        choice = BackendChoice(profile_of(command, backend_name))
        trial = replace(trial, placement=replace(trial.placement, backend=choice.profile.name))
        spec = replace(spec, backends=(choice,))
    backend = backends.create(choice.profile, BackendContext(command.home))
    try:
        if not isinstance(backend, ManifestBackend):
            raise AutotrainError(
                f"Backend {choice.profile.name!r} does not run trials as objects of a cluster.",
                "Expected a backend of type kubernetes, kubeflow, adaptdl or frameworkcontroller.",
                f"Name one: %autotrain export {experiment.name} --yaml --backend NAME",
            )
        return backend.manifest_text(trial_spec(spec, trial))
    finally:
        backend.close()


def _written(command: CommandContext, experiment: Experiment, output: str | None, ending: str, text: str) -> str:
    """The name of the file that holds a text now."""
    target = command.cwd / (output or f"{experiment.name.replace('@', '-')}.{ending}")
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise AutotrainError(
            f"{target.name} cannot be written: {error.strerror}.",
            "A file name in a folder that exists.",
            "Choose another with -o FILE.",
        ) from None
    return target.name
