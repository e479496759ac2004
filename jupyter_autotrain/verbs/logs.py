"""The verb `logs`: the output of a trial."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from jupyter_autotrain.client import Experiment
from jupyter_autotrain.client.logs import LogFollower, LogTail, read_tail
from jupyter_autotrain.client.trial_selection import trial_or_newest
from jupyter_autotrain.core import wire
from jupyter_autotrain.core.records import TrialRecord
from jupyter_autotrain.verbs.context import CommandContext

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
