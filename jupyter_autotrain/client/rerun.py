"""Submitting again what still runs: an experiment of the same name from the same notebook."""

from __future__ import annotations

from collections.abc import Callable

from jupyter_autotrain.client.experiment import Experiment
from jupyter_autotrain.client.lookup import unfinished
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import ExperimentSpec
from jupyter_autotrain.core.wording import count

Say = Callable[[str], object]
_YES = {"y", "yes"}


def before_rerun(home: Home, spec: ExperimentSpec, choice: str, say: Say, ask: Callable[[str], str]) -> None:
    """Do with the earlier runs what `on_rerun:` wishes, before the new one is sent, and say it in a line for each.

    Args:
        home: Where experiments lie.
        spec: What is about to be sent.
        choice: keep, stop or ask.
        say: Prints a line.
        ask: Puts a question to the user.

    Raises:
        ManagerError: An earlier run is to be stopped and the manager did not answer in time.
    """
    for earlier in unfinished(home, spec.name, spec.origin):
        if choice == "ask":
            _ask(earlier, say, ask)
        elif choice == "stop":
            _stop(earlier, say)
        else:
            say(f"{_still_runs(earlier)} beside this new run. {_how(earlier)} Stop it always: on_rerun: stop\n")


def _ask(earlier: Experiment, say: Say, ask: Callable[[str], str]) -> None:
    try:
        answer = ask(f"{_still_runs(earlier)}. Stop it before this new run begins? [y/N] ")
    except (EOFError, NotImplementedError, OSError):
        say(f"{_still_runs(earlier)} beside this new run, as nobody can be asked here. {_how(earlier)}\n")
        return
    if answer.strip().lower() in _YES:
        _stop(earlier, say)
    else:
        say(f"{_label(earlier)} goes on. {_how(earlier)}\n")


def _stop(earlier: Experiment, say: Say) -> None:
    say(f"The earlier run is stopped first. {earlier.stop()}\n")


def _label(earlier: Experiment) -> str:
    # Its number is always told: with the new run there are two of the name.
    record = earlier.record
    return f"{record.name}@{record.version}"


def _still_runs(earlier: Experiment) -> str:
    record = earlier.record
    ended = sum(many for state, many in record.counts.items() if state.is_final)
    return f"{_label(earlier)} still runs ({ended} of {count(record.spec.trials, 'trial')} ended)"


def _how(earlier: Experiment) -> str:
    name = _label(earlier)
    return f"Its view: %autotrain show {name}   End it: %autotrain stop {name}"
