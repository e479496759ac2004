"""The verb `pull`: the output files of a trial, listed or copied here."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from jupyter_autotrain.client import Experiment
from jupyter_autotrain.client.outputs import Output
from jupyter_autotrain.client.trial_selection import trial_or_best
from jupyter_autotrain.core.sizes import format_bytes
from jupyter_autotrain.core.text_format import count
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.verbs.context import CommandContext
from jupyter_autotrain.verbs.json_output import write_json

_MAX_LISTED = 20


def pull(command: CommandContext, arguments: argparse.Namespace) -> None:
    """Copy the output files of a trial into a folder here, or list them."""
    experiment = command.find(arguments.experiment)
    trial = trial_or_best(experiment.store, experiment.record, arguments.trial)
    folder = _folder(experiment, trial.number, arguments)
    written_only = arguments.in_place

    def show(line: str) -> None:
        if not arguments.json:
            command.write(f"{line}\n")

    if not arguments.list:
        target = command.cwd / folder
        experiment.pull(target, trial, overwrite=arguments.overwrite, written_only=written_only, show=show)
    found = experiment.outputs(trial, written_only=written_only)
    if arguments.json:
        write_json(command, {"trial": trial.number, "folder": str(folder), "files": [one.name for one in found]})
    elif not found:
        command.write(f"Trial {trial.number} left no files. What a cell writes into its own folder is kept.\n")
    else:
        end = ":" if arguments.list else f" copied to {folder}"
        command.write(f"{count(len(found), 'file')} of trial {trial.number}{end}\n{_listed(found)}")


def _folder(experiment: Experiment, trial: int, arguments: argparse.Namespace) -> Path:
    """The target folder: one for each trial, unless the user names another."""
    if arguments.in_place and arguments.output:
        raise AutotrainError(
            "pull: both --in-place and -o were given.", "One of them says where to copy to.", "Leave one of them out."
        )
    if arguments.in_place:
        return Path(experiment.record.spec.bundle.cwd)
    return Path(arguments.output or f"{experiment.name.replace('@', '-')}-trial-{trial}")


def _listed(found: Sequence[Output]) -> str:
    lines = [
        f"  {_on_one_line(one.name)}  ({format_bytes(one.size_bytes)}{_place(one)})\n" for one in found[:_MAX_LISTED]
    ]
    more = [f"  ... and {len(found) - _MAX_LISTED} more\n"] if len(found) > _MAX_LISTED else []
    return "".join([*lines, *more])


def _on_one_line(name: str) -> str:
    return name if name.isprintable() else repr(name)


def _place(one: Output) -> str:
    return ", still where the trial ran" if one.is_elsewhere else ""
