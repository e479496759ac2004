"""Submitting an experiment again while an earlier run of the same name and notebook is unfinished."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from jupyter_autotrain.client.experiment import Experiment
from jupyter_autotrain.client.lookup import unfinished
from jupyter_autotrain.client.manager_client import secret_values
from jupyter_autotrain.client.waiting import Patience
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import ExperimentSpec
from jupyter_autotrain.core.text_format import count

_LEAST_S = 0.5  # to wait for a stop at all
_YES = {"y", "yes"}


@dataclass(frozen=True, slots=True)
class Dialogue:
    """The way to the user: `say` tells something, `ask` asks and gives the answer."""

    say: Callable[[str], object]
    ask: Callable[[str], str]


def before_rerun(
    home: Home,
    spec: ExperimentSpec,
    secrets: Mapping[str, str],
    on_rerun: str,
    dialogue: Dialogue,
    patience: Patience,
) -> Experiment | None:
    """Stop or keep the unfinished earlier runs as `on_rerun:` says, and print a line about it.

    Args:
        home: Where experiments lie.
        spec: The new run.
        secrets: Where the values of its secrets are looked up; when one is missing, no earlier run is stopped.
        on_rerun: keep, stop or ask.
        dialogue: With the user.
        patience: How long to wait until they are stopped.

    Returns:
        The newest earlier run that continues along with the new one; None if there is none.

    Raises:
        AutotrainError: A secret is not set.
        ManagerError: An earlier run is to be stopped, and there is no manager to do it.
    """
    secret_values(spec, secrets)
    earlier = unfinished(home, spec.name, spec.origin)
    if not earlier:
        return None
    if on_rerun == "ask":
        return _ask(earlier, dialogue, patience)
    if on_rerun == "stop":
        _stop(earlier, dialogue, patience)
        return None
    dialogue.say(f"{_still_runs(earlier)} beside this new run. {_commands(earlier)}   Stop it always: on_rerun: stop\n")
    return earlier[-1]


def _ask(earlier: Sequence[Experiment], dialogue: Dialogue, patience: Patience) -> Experiment | None:
    them = "it" if len(earlier) == 1 else "them"
    try:
        answer = dialogue.ask(f"{_still_runs(earlier)}. Stop {them} before this new run begins? [y/N] ")
    except (EOFError, NotImplementedError, OSError):
        unasked = "beside this new run, as no question can be asked here."
        dialogue.say(f"{_still_runs(earlier)} {unasked} {_commands(earlier)}\n")
        return earlier[-1]
    if answer.strip().lower() in _YES:
        _stop(earlier, dialogue, patience)
        return None
    dialogue.say(f"{_label(earlier[-1])} continues. {_commands(earlier)}\n")
    return earlier[-1]


def _stop(earlier: Sequence[Experiment], dialogue: Dialogue, patience: Patience) -> None:
    """Stop earlier runs; what takes longer than there is patience for goes on in the background."""
    for experiment in earlier:
        begun_s = time.monotonic()
        if patience.left_s < _LEAST_S:
            experiment.request("stop", {})
            dialogue.say(f"The earlier run {_label(experiment)} is stopped in the background.\n")
        else:
            dialogue.say(f"The earlier run is stopped first. {experiment.stop(timeout_s=patience.left_s)}\n")
        patience.spend(time.monotonic() - begun_s)


def _label(experiment: Experiment) -> str:
    # Always with its number: with the new run there are two of the name.
    record = experiment.record
    return f"{record.name}@{record.version}"


def _still_runs(earlier: Sequence[Experiment]) -> str:
    record = earlier[-1].record
    newest = f"{_label(earlier[-1])} ({record.ended} of {count(record.spec.trials, 'trial')} ended)"
    if len(earlier) == 1:
        return f"{newest} still runs"
    return f"{newest} and {count(len(earlier) - 1, 'other run')} still run"


def _commands(earlier: Sequence[Experiment]) -> str:
    name = _label(earlier[-1])
    return f"Its view: %autotrain show {name}   End it: %autotrain stop {name}"
