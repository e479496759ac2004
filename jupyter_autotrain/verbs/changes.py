"""Verbs that change an experiment: `resume`, `update`, `continue`."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from typing import Final, cast

from jupyter_autotrain.agent.json import JsonValue
from jupyter_autotrain.core.text_format import count, trial_numbers
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.header.document import PlainScalar, UnfitError, resolve
from jupyter_autotrain.header.quantities import parse_duration
from jupyter_autotrain.verbs.context import CommandContext

_UPDATES: Final = ("trials", "concurrency", "failures", "priority", "weight")
_PARAM = re.compile(r"([A-Za-z_]\w*)=(.+)", re.DOTALL)


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
