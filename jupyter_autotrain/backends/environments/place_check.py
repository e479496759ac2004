"""The check of a node's interpreter before the first trial of an experiment is sent there."""

from __future__ import annotations

from collections.abc import Callable

from jupyter_autotrain.backends.environments import comparison
from jupyter_autotrain.core.python_environment import (
    EnvironmentKind,
    InterpreterReport,
    PythonEnvironment,
    PythonPackage,
)
from jupyter_autotrain.core.spec import TrialSpec
from jupyter_autotrain.errors import BackendError, BackendUnavailableError

_Key = tuple[str, PythonEnvironment, tuple[PythonPackage, ...]]


class InterpreterCheck:
    """Remembers which nodes have what a cell needs; a node that lacks something is asked again next time."""

    def __init__(self) -> None:
        self._passed: set[_Key] = set()

    def check(self, node: str, trial: TrialSpec, ask: Callable[[], list[InterpreterReport]]) -> None:
        """Make sure that a node has what a trial needs.

        Args:
            node: The node's name.
            trial: The trial.
            ask: Asks the node.

        Raises:
            BackendError: It lacks something; no waiting helps.
        """
        key = (node, trial.python_environment, trial.python_packages)
        is_place = trial.python_environment.kind is EnvironmentKind.PLACE  # its own interpreter runs the agent
        if key in self._passed or (is_place and not trial.python_packages):
            return
        try:
            comparison.refuse(ask(), trial.python_packages)
        except BackendUnavailableError as error:
            raise BackendError(error.found, error.expected, error.action) from None
        self._passed.add(key)
