"""The verb `label`: the samples that a model was least sure of go back to the people who label."""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

from jupyter_autotrain.client import Experiment
from jupyter_autotrain.client.experiment_files import trial_or_best
from jupyter_autotrain.client.fetching.source import label_source
from jupyter_autotrain.client.fetching.uncertain import samples_of, staged
from jupyter_autotrain.core.data import DataOrigin
from jupyter_autotrain.core.text_format import number
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.verbs.context import CommandContext


def label(command: CommandContext, arguments: argparse.Namespace) -> None:
    """Send the samples of a trial's `uncertain.csv` as a new task, the least sure first.

    Raises:
        AutotrainError: The trial has not written the file, no labels are in `data:`, or the server refuses.
    """
    experiment = command.find(arguments.experiment)
    trial = trial_or_best(experiment.store, experiment.record, arguments.trial)
    origin = _origin(experiment, arguments.to)
    found = samples_of(experiment, trial)
    chosen = found[: arguments.number]
    if not chosen:
        command.write(f"{experiment.name}, trial {trial.number}: no sample is uncertain; nothing was sent.\n")
        return
    name = f"{experiment.name}, trial {trial.number}: least sure"
    with TemporaryDirectory() as folder, label_source(origin, command.environ) as server:
        try:
            made = server.send(origin, name, staged(chosen, Path(folder)))
        except AutotrainError:
            raise
        except Exception as error:  # whatever the server's library raises
            raise AutotrainError(
                f"label: {origin.kind} at {origin.server} does not take them: {type(error).__name__}: "
                f"{str(error).splitlines()[0] if str(error) else ''}",
                "A server that answers, and leave to add tasks there.",
                "Try again when it does; nothing here has changed.",
            ) from error
    span = f"uncertainty {number(chosen[0].uncertainty)} to {number(chosen[-1].uncertainty)}"
    command.write(f"Sent {len(chosen)} of {len(found)} samples to {origin.server} as {made} ({span}).\n")


def _origin(experiment: Experiment, name: str | None) -> DataOrigin:
    labelled = {one.name: one.origin for one in experiment.record.spec.data if one.origin and one.origin.is_labelled}
    chosen = [origin for key, origin in labelled.items() if name in (None, key)]
    if len(chosen) != 1:
        raise AutotrainError(
            f"label: {experiment.name} has {', '.join(labelled) or 'no labels'} in `data:`"
            + (f", and no {name!r}." if name else "."),
            "One entry with labels of CVAT or Label Studio.",
            "Say which with --to NAME." if len(labelled) > 1 else "Add one, as in {cvat: task/12}.",
        )
    return chosen[0]
