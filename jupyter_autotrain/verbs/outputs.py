"""Verbs that give what trials left: `logs`, `pull`, `export`, `report`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import cast

from jupyter_autotrain import backends, capture
from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.json import JsonObject, to_json
from jupyter_autotrain.agent.sizes import format_bytes
from jupyter_autotrain.agent.trial import environment
from jupyter_autotrain.client import Experiment
from jupyter_autotrain.client.experiment_files import trial_or_best, trial_or_newest
from jupyter_autotrain.client.logs import LogFollower, LogTail, read_tail
from jupyter_autotrain.client.outputs import Output
from jupyter_autotrain.client.tracking.exporter import exporter
from jupyter_autotrain.client.tracking.mirror import Mirror
from jupyter_autotrain.core.attempt import trial_spec
from jupyter_autotrain.core.backend import BackendContext
from jupyter_autotrain.core.backend_check import ManifestBackend
from jupyter_autotrain.core.profile import BackendChoice
from jupyter_autotrain.core.records import TrialRecord
from jupyter_autotrain.core.text_format import count
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.verbs.backend_profiles import profile_of
from jupyter_autotrain.verbs.context import CommandContext
from jupyter_autotrain.verbs.results import write_json
from jupyter_autotrain.views.report import html

_POLL_S = 0.3


def logs(command: CommandContext, arguments: argparse.Namespace) -> None:
    """Print the end of a trial's output; with `-f` follow it until the trial ends."""
    experiment = command.find(arguments.experiment)
    trial = trial_or_newest(experiment.store, experiment.record, arguments.trial)
    directory = experiment.directory(trial)
    stream = _stream(experiment, arguments)
    tail = read_tail(directory, stream, arguments.lines)
    remark = ""
    is_stdout = wire.base_of_stream(stream) == wire.STDOUT
    if not tail.end_bytes and is_stdout and not (arguments.follow and not trial.state.is_final):
        errors = wire.stream_of_rank(wire.STDERR, arguments.rank)
        in_stderr = read_tail(directory, errors, arguments.lines)
        if in_stderr.end_bytes:
            stream = errors
            tail = in_stderr
            remark = "stdout is empty"
    write = command.write_raw if arguments.raw else command.write
    command.write(f"{_title(experiment, trial, stream, tail, remark)}\n")
    write(tail.text)
    if arguments.follow:
        _follow(experiment, trial.number, LogFollower(directory, stream, tail.end_bytes), write)


def _stream(experiment: Experiment, arguments: argparse.Namespace) -> str:
    if arguments.launcher:
        return wire.LAUNCHER_LOG
    experiment.check_rank(arguments.rank)
    return wire.stream_of_rank(wire.STDERR if arguments.stderr else wire.STDOUT, arguments.rank)


def _title(experiment: Experiment, trial: TrialRecord, stream: str, tail: LogTail, remark: str) -> str:
    shown = tail.text.count("\n") + (not tail.text.endswith("\n") and bool(tail.text))
    total = tail.lines_before + shown
    if not tail.end_bytes:
        remark = f"{trial.state}, nothing printed so far"
    elif tail.lines_before:
        of_all = f"last {shown:,} of {total:,} lines; all of them: -n {total}"
        remark = f"{remark}; {of_all}" if remark else of_all
    base, _, rank = stream.partition("-")
    of_rank = f", rank {rank or 0}" if experiment.record.spec.resources.ranks > 1 and base != wire.LAUNCHER_LOG else ""
    return f"{experiment.name}, trial {trial.number}{of_rank}, {base}" + (f" ({remark}):" if remark else ":")


def _follow(experiment: Experiment, number: int, follower: LogFollower, write: Callable[[str], None]) -> None:
    try:
        ended = False
        while not ended:
            ended = experiment.wait(timeout_s=_POLL_S) or experiment.store.trial(experiment.id, number).state.is_final
            for text in follower.read():
                write(text)
    except KeyboardInterrupt:
        write("\n(no longer following; the trial continues)\n")


def track(command: CommandContext, arguments: argparse.Namespace) -> None:
    """Deliver all that an experiment has so far to a tracking server.

    Raises:
        AutotrainError: The server is not known or does not answer; what it has not taken waits.
    """
    experiment = command.find(arguments.experiment)
    mirror = Mirror(experiment, arguments.server, exporter(arguments.server))
    with mirror.alone():
        before = mirror.waiting
        try:
            is_whole = mirror.deliver()
        except AutotrainError:
            raise
        except Exception as error:  # whatever the server's library raises
            raise AutotrainError(
                f"{arguments.server} does not take it: {type(error).__name__}: {error}",
                f"Nothing is lost: {count(mirror.waiting, 'point')} of {experiment.name} wait here.",
                "Try again when it answers.",
            ) from error
        rest = "" if is_whole else "; it still runs"
        command.write(f"{experiment.name}: {count(before, 'point')} delivered to {arguments.server}{rest}.\n")


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
    """Return the target folder: one for each trial, unless the user names another."""
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


def report(command: CommandContext, arguments: argparse.Namespace) -> None:
    """Write all results of an experiment as one HTML file."""
    experiment = command.find(arguments.experiment)
    text = html(experiment, by=arguments.by, over=arguments.over)
    name = _written(command, experiment, arguments.output, "html", text)
    command.write(f"Wrote {name} ({format_bytes(len(text.encode()))}). Open it in a browser.\n")


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
    with closing(backends.create(choice.profile, BackendContext(command.home))) as backend:
        if not isinstance(backend, ManifestBackend):
            raise AutotrainError(
                f"Backend {choice.profile.name!r} does not run trials as objects of a cluster.",
                "Expected a backend of type kubernetes, kubeflow, adaptdl or frameworkcontroller.",
                f"Name one: %autotrain export {experiment.name} --yaml --backend NAME",
            )
        return backend.manifest_text(trial_spec(spec, trial))


def _written(command: CommandContext, experiment: Experiment, output: str | None, ending: str, text: str) -> str:
    """Return the name of the file that holds a text now."""
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
