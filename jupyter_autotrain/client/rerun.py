"""Submitting again what still runs: an experiment of the same name from the same notebook."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from jupyter_autotrain.client.experiment import Experiment
from jupyter_autotrain.client.lookup import unfinished
from jupyter_autotrain.client.manager_client import secret_values
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import ExperimentSpec
from jupyter_autotrain.core.wording import count

Say = Callable[[str], object]
_YES = {"y", "yes"}


def before_rerun(
    home: Home, spec: ExperimentSpec, secrets: Mapping[str, str], choice: str, say: Say, ask: Callable[[str], str]
) -> Experiment | None:
    """Do with the earlier runs what `on_rerun:` wishes, before the new one is sent, and say it in a line.

    Args:
        home: Where experiments lie.
        spec: What is about to be sent.
        secrets: Where the values of its secrets are looked up: what cannot be sent stops nothing.
        choice: keep, stop or ask.
        say: Prints a line.
        ask: Puts a question to the user.

    Returns:
        The newest earlier run that goes on beside the new one; None where none does.

    Raises:
        AutotrainError: A secret is not set.
        ManagerError: An earlier run is to be stopped and the manager did not answer in time.
    """
    secret_values(spec, secrets)
    earlier = unfinished(home, spec.name, spec.origin)
    if not earlier:
        return None
    if choice == "ask":
        return _ask(earlier, say, ask)
    if choice == "stop":
        _stop(earlier, say)
        return None
    say(f"{_still_runs(earlier)} beside this new run. {_how(earlier)}   Stop it always: on_rerun: stop\n")
    return earlier[-1]


def _ask(earlier: Sequence[Experiment], say: Say, ask: Callable[[str], str]) -> Experiment | None:
    them = "it" if len(earlier) == 1 else "them"
    try:
        answer = ask(f"{_still_runs(earlier)}. Stop {them} before this new run begins? [y/N] ")
    except (EOFError, NotImplementedError, OSError):
        say(f"{_still_runs(earlier)} beside this new run, as nobody can be asked here. {_how(earlier)}\n")
        return earlier[-1]
    if answer.strip().lower() in _YES:
        _stop(earlier, say)
        return None
    say(f"{_label(earlier[-1])} goes on. {_how(earlier)}\n")
    return earlier[-1]


def _stop(earlier: Sequence[Experiment], say: Say) -> None:
    for experiment in earlier:
        say(f"The earlier run is stopped first. {experiment.stop()}\n")


def _label(experiment: Experiment) -> str:
    # Its number is always told: with the new run there are two of the name.
    record = experiment.record
    return f"{record.name}@{record.version}"


def _still_runs(earlier: Sequence[Experiment]) -> str:
    record = earlier[-1].record
    others = f" and {count(len(earlier) - 1, 'other run')}" if len(earlier) > 1 else ""
    ended = sum(many for state, many in record.counts.items() if state.is_final)
    progress = f"{ended} of {count(record.spec.trials, 'trial')} ended"
    return f"{_label(earlier[-1])} ({progress}){others} still {'run' if others else 'runs'}"


def _how(earlier: Sequence[Experiment]) -> str:
    name = _label(earlier[-1])
    return f"Its view: %autotrain show {name}   End it: %autotrain stop {name}"
