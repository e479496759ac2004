"""Hooks: what is told, and whom, when an experiment or a trial changes its state. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from jupyter_autotrain.core.json import JsonObject
from jupyter_autotrain.core.states import ExperimentState, TrialState

ENDED: Final = "ended"
FAILED: Final = "failed"
_TOLD_STATES: Final = tuple(state for state in TrialState if state is TrialState.RUNNING or state.is_final)
EVENTS: Final = (ENDED, FAILED, *(f"trial_{state.lower()}" for state in _TOLD_STATES))
"""An experiment has ended, however; it has failed; a trial has changed to a state."""

_VARIABLE: Final = re.compile(r"\$\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Hook:
    """Whom to tell: a web address that takes a POST of JSON, or a command that reads JSON from its standard input.

    Attributes:
        url: The address; `${NAME}` stands for an environment variable.
        headers: Header fields of the POST; values may have `${NAME}` too.
        command: The program and its arguments; no shell.
        events: Of `EVENTS`.
        timeout_s: How long one try may take.
    """

    name: str
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    command: tuple[str, ...] = ()
    events: tuple[str, ...] = (ENDED,)
    timeout_s: float = 10.0

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the environment variables that it needs."""
        return variables_in((self.url, *self.headers.values()))


@dataclass(frozen=True, slots=True)
class Delivery:
    """One message to one hook, kept until it is delivered or given up.

    Attributes:
        id: The same at each try, so that a receiver knows what it has seen.
        payload: The JSON that is sent.
        tries: How often it was tried.
    """

    id: str
    experiment_id: str
    hook: str
    payload: JsonObject
    tries: int = 0


def variables_in(texts: Iterable[str]) -> tuple[str, ...]:
    """The names that stand as `${NAME}` in texts, each once."""
    names = [name for text in texts for name in _VARIABLE.findall(text)]
    return tuple(dict.fromkeys(names))


def resolved(text: str, variables: Mapping[str, str]) -> str:
    """The text with its variables' values.

    Raises:
        KeyError: One is not known.
    """
    return _VARIABLE.sub(lambda match: variables[match.group(1)], text)


def experiment_events(state: ExperimentState) -> tuple[str, ...]:
    """The events of an experiment's end."""
    return (ENDED, FAILED) if state is ExperimentState.FAILED else (ENDED,)
