"""Verbs that follow, control or change an experiment: `wait`, `stop`, `retry`, `resume`, `update`, `continue`.

`ls --warm` and `stop --warm` are about the warm processes of this machine, from which trials begin.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Mapping
from typing import Final, cast

from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.agent.pool import needed_imports, warm_list
from jupyter_autotrain.agent.pool.warm_list import WarmEntry
from jupyter_autotrain.agent.service import warm_starts
from jupyter_autotrain.agent.sizes import format_bytes
from jupyter_autotrain.agent.states import ExperimentState, TrialState
from jupyter_autotrain.capture.bundle import FILES, SCRIPT
from jupyter_autotrain.client import Experiment
from jupyter_autotrain.core.table import Table
from jupyter_autotrain.core.text_format import count, duration, first_of, trial_numbers
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.header.document import PlainScalar, UnfitError, resolve
from jupyter_autotrain.header.quantities import parse_duration
from jupyter_autotrain.verbs.context import CommandContext
from jupyter_autotrain.views.summary import headline, trial_table, warning_lines

_UPDATES: Final = ("trials", "concurrency", "failures", "priority", "weight")
_PARAM = re.compile(r"([A-Za-z_]\w*)=(.+)", re.DOTALL)

_SHOWN = 6
_HEADS = ("pid", "imported", "left to trials", "memory", "used", "interpreter")


def listed(command: CommandContext) -> list[WarmEntry]:
    """Return them, the most recently used first."""
    return warm_list.living(command.home.root / warm_starts.FOLDER)


def show_warm(command: CommandContext) -> None:
    """List them: what each has imported for trials, what it leaves to them, and why."""
    found = listed(command)
    if found:
        command.present(Table(_HEADS, [_row(command, entry) for entry in found]))
    else:
        command.write("No warm processes. One comes with a trial of this machine, and ends when none follows.\n")


def stop_warm(command: CommandContext) -> None:
    """End them all; trials that began from them go on."""
    ended = warm_list.end_all(command.home.root / warm_starts.FOLDER)
    text = f"Ended {count(ended, 'warm process', 'warm processes')}. Trials that run go on."
    command.write(f"{text if ended else 'No warm processes.'}\n")


def left_to_trials(command: CommandContext, experiment_id: str) -> list[str]:
    """Return a sentence on each import that every trial of an experiment makes for itself, as far as that is known."""
    bundle = command.home.bundle(experiment_id)
    needed = needed_imports.of_script(str(bundle / SCRIPT), str(bundle / FILES))
    tops = {name.partition(":")[0].partition(".")[0] for name in needed}
    found = dict[str, str]()
    for entry in listed(command):
        found.update({name: why for name, why in entry.left_out.items() if name in tops})
    return [f"Each trial imports {name} for itself: {why}." for name, why in found.items()]


def _row(command: CommandContext, entry: WarmEntry) -> tuple[str, ...]:
    left_out = [f"{name}: {why}" for name, why in entry.left_out.items()]
    return (
        str(entry.process.pid),
        first_of(_modules(entry), _SHOWN) or "-",
        "; ".join(left_out) or "-",
        format_bytes(entry.memory_bytes),
        f"{duration(max(0.0, command.now() - entry.used_s))} ago",
        entry.python,
    )


def warm_json(entry: WarmEntry) -> JsonObject:
    """Return one as JSON."""
    return {
        "pid": entry.process.pid,
        "imports": _modules(entry),
        "left_out": entry.left_out,
        "memory_bytes": entry.memory_bytes,
        "used_s": entry.used_s,
        "python": entry.python,
    }


def _modules(entry: WarmEntry) -> list[str]:
    return list(dict.fromkeys(name.partition(":")[0] for name in entry.imports))


_PROGRESS_S = 10.0


class WaitInterrupted(KeyboardInterrupt):
    """An interrupt of a wait, with what to do next; a notebook shows this text alone."""

    def _render_traceback_(self) -> list[str]:
        return str(self).splitlines()


def wait(command: CommandContext, arguments: argparse.Namespace) -> bool:
    """Wait until an experiment ends, and give whether it has succeeded; an interrupt detaches, it continues."""
    return follow(command, command.find(arguments.experiment), timeout_s=arguments.timeout_s)


def follow(command: CommandContext, experiment: Experiment, *, timeout_s: float | None = None) -> bool:
    """Print now and then how many trials have ended, until the experiment ends; then its summary.

    Returns:
        Whether it has ended, and succeeded.

    Raises:
        WaitInterrupted: The user has interrupted it.
    """
    progress = _Progress(command)
    began_s = time.monotonic()
    try:
        while not experiment.wait(timeout_s=0.5):
            progress.tell(experiment)
            if timeout_s is not None and time.monotonic() - began_s > timeout_s:
                command.write(f"{experiment.name} is still {experiment.state} after {duration(timeout_s)}.\n")
                return False
    except KeyboardInterrupt:
        raise WaitInterrupted(
            f"Detached: {experiment.name} continues in the background.\n"
            f"Watch it again: %autotrain show {experiment.name}   End it: %autotrain stop {experiment.name}"
        ) from None
    command.write(f"{headline(experiment)}\n")
    command.present(trial_table(experiment))
    for line in warning_lines(experiment):
        command.write(f"{line}\n")
    return experiment.state is ExperimentState.SUCCEEDED


class _Progress:
    """Says now and then how far an experiment is; what becomes of each trial, the table at the end says."""

    def __init__(self, command: CommandContext) -> None:
        self._command = command
        self._next_s = time.monotonic() + _PROGRESS_S
        self._told = ""

    def tell(self, experiment: Experiment) -> None:
        if time.monotonic() < self._next_s:
            return
        self._next_s = time.monotonic() + _PROGRESS_S
        record = experiment.record
        failed = record.counts.get(TrialState.FAILED, 0)
        total = max(record.spec.trials, sum(record.counts.values()))
        text = f"{record.ended} of {count(total, 'trial')} ended" + (f", {failed} failed" if failed else "")
        if text != self._told:
            self._told = text
            self._command.write(f"{text}\n")


def stop(command: CommandContext, arguments: argparse.Namespace) -> None:
    """End an experiment, or some of its trials, and print the receipt; with `--warm` the warm processes."""
    if arguments.warm:
        stop_warm(command)
        return
    experiment = command.find(arguments.experiment)
    command.write(f"{experiment.stop(arguments.trial)}\n")


def retry(command: CommandContext, arguments: argparse.Namespace) -> None:
    """Run the failed trials of an experiment again."""
    experiment = command.find(arguments.experiment)
    again = experiment.retry()
    if not again:
        command.write(f"{experiment.name} is {experiment.state}: it has no failed or cancelled trial to run again.\n")
        return
    runs = f"{count(len(again), 'trial')} {'runs' if len(again) == 1 else 'run'} again"
    command.write(f"{experiment.name}: {runs}. Watch: %autotrain show {experiment.name}\n")


def resume(command: CommandContext, arguments: argparse.Namespace) -> None:
    """Go on with an experiment that was stopped."""
    experiment = command.find(arguments.experiment)
    again = experiment.resume()
    record = experiment.record
    left = max(record.spec.trials - sum(record.counts.values()), 0)
    if not again and not left:
        command.write(f"{experiment.name} is {experiment.state}: it has no stopped trial, and all were created.\n")
        return
    parts = [f"{trial_numbers(again)} again"] if again else []
    parts += [f"{count(left, 'more trial')}"] if left else []
    command.write(f"{experiment.name} runs {' and '.join(parts)}. Watch: %autotrain show {experiment.name}\n")


def update(command: CommandContext, arguments: argparse.Namespace) -> None:
    """Change the numbers of an experiment."""
    experiment = command.find(arguments.experiment)
    time_s = None if arguments.time is None else _duration(arguments.time)
    asked = {name: getattr(arguments, name) for name in _UPDATES}
    if time_s is None and all(value is None for value in asked.values()):
        raise AutotrainError(
            "%autotrain update: nothing to change.",
            "Expected: --trials, --concurrency, --time, --failures, --priority or --weight.",
            f"For example: %autotrain update {experiment.name} --trials 30",
        )
    experiment.update(time_s=time_s, **asked)
    spec = experiment.record.spec
    command.write(f"{experiment.name}: {count(spec.trials, 'trial')}, {spec.concurrency} at the same time.\n")


def continue_from(command: CommandContext, arguments: argparse.Namespace) -> None:
    """Add trials that go on from the best ones, or from those that are named."""
    experiment = command.find(arguments.experiment)
    params = _params(arguments.params)
    trials = arguments.trial or experiment.best_trials(arguments.best or 1)
    added = experiment.continue_from(trials, params)
    pairs = [f"trial {new} goes on from trial {old}" for new, old in zip(added, trials, strict=True)]
    command.write(f"{experiment.name}: {', '.join(pairs)}. Watch: %autotrain show {experiment.name}\n")


def _duration(text: str) -> float:
    try:
        return parse_duration(text)
    except UnfitError as error:
        raise AutotrainError(
            f"%autotrain update: --time {text!r}.", f"Expected: {error.expected}.", "Correct it."
        ) from None


def _params(words: list[str]) -> Mapping[str, JsonValue]:
    params: dict[str, JsonValue] = {}
    for word in words:
        match = _PARAM.fullmatch(word)
        if match is None:
            raise AutotrainError(
                f"%autotrain continue: {word!r}.", "Expected: NAME=VALUE, as in epochs=60.", "Correct it."
            )
        params[match[1]] = cast("JsonValue", resolve(PlainScalar(match[2])))
    return params
