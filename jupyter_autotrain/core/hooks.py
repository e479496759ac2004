"""Hooks: what is told, and whom, when an experiment or a trial changes its state. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.agent.states import ExperimentState, TrialState

ENDED: Final = "ended"
FAILED: Final = "failed"
_TOLD_STATES: Final = tuple(state for state in TrialState if state is TrialState.RUNNING or state.is_final)
EVENTS: Final = (ENDED, FAILED, *(f"trial_{state.lower()}" for state in _TOLD_STATES))
"""An experiment has ended, however; it has failed; a trial has changed to a state."""

_VARIABLE: Final = re.compile(r"\$\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Hook:
    """A receiver of events: a web address that takes a POST of JSON, a command that reads it, or a chat service.

    Attributes:
        url: The address; `${NAME}` stands for an environment variable.
        headers: Header fields of the POST; values may have `${NAME}` too.
        command: The program and its arguments; no shell.
        service: The address of the service, as Apprise writes it; `${NAME}` as in `url`.
        events: Of `EVENTS`.
        timeout_s: How long one try may take.
    """

    name: str
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    command: tuple[str, ...] = ()
    events: tuple[str, ...] = (ENDED,)
    timeout_s: float = 10.0
    service: str = ""

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the environment variables that it needs."""
        return variables_in((self.url, self.service, *self.headers.values()))


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
    """Return the names that stand as `${NAME}` in texts, each once."""
    return tuple(dict.fromkeys(chain.from_iterable(map(_VARIABLE.findall, texts))))


def resolved(text: str, variables: Mapping[str, str]) -> str:
    """Return the text with its variables' values.

    Raises:
        KeyError: One is not known.
    """
    return _VARIABLE.sub(lambda match: variables[match.group(1)], text)


def experiment_events(state: ExperimentState) -> tuple[str, ...]:
    """Return the events of an experiment's end."""
    return (ENDED, FAILED) if state is ExperimentState.FAILED else (ENDED,)
