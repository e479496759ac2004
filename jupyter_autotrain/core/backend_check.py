"""The methods that a backend may offer besides `Backend`, so that a check of it says what exactly is wrong."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from jupyter_autotrain.core.backend import JobRef
from jupyter_autotrain.core.spec import TrialSpec
from jupyter_autotrain.errors import AutotrainError


@dataclass(frozen=True, slots=True)
class CheckStep:
    """One step of a check.

    Attributes:
        node: The node that it is about; "" for the whole backend.
        name: What is checked.
        is_good: Whether it succeeded.
        text: What was found.
        action: What to do, where something is wrong or slow.
        took_s: How long it took; None where that says nothing.
    """

    node: str
    name: str
    is_good: bool
    text: str
    action: str = ""
    took_s: float | None = None


class StepTimer:
    """A maker of the steps of one node: `begin` one, then say how it ended.

    Args:
        node: The node; "" for the whole backend.
    """

    def __init__(self, node: str) -> None:
        self.node = node
        self._name = ""
        self._begun_s = 0.0

    def begin(self, name: str) -> None:
        """Begin a step."""
        self._name = name
        self._begun_s = time.monotonic()

    def done(self, text: str, action: str = "") -> CheckStep:
        """Return the step as one that succeeded."""
        return CheckStep(self.node, self._name, True, text, action, time.monotonic() - self._begun_s)

    def failed(self, text: str, action: str = "") -> CheckStep:
        """Return the step as one that failed."""
        return CheckStep(self.node, self._name, False, text, action)

    def refused(self, error: AutotrainError) -> CheckStep:
        """Return the step as one that failed with an error."""
        return self.failed(error.found, error.action or error.expected)


@runtime_checkable
class CheckableBackend(Protocol):
    """A backend that checks its nodes one by one."""

    def node_names(self) -> Sequence[str]:
        """Return its nodes, whether they can be reached or not."""
        ...

    def check_node(self, node: str) -> Iterator[CheckStep]:
        """Yield the steps before a trial can run there, and end after the first that fails.

        It raises nothing.
        """
        ...

    def upload(self, node: str, bundle: Path) -> None:
        """Send a bundle as `submit` does.

        Raises:
            BackendError: It cannot be sent.
        """
        ...

    def remove(self, ref: JobRef) -> None:
        """Delete the directory of a job that has ended.

        Raises:
            BackendError: It cannot be deleted.
        """
        ...


@runtime_checkable
class SteppedBackend(Protocol):
    """A backend that has steps of its own before a trial can run there, in the place of `probe` and `discover`."""

    def check_steps(self) -> Iterator[CheckStep]:
        """Yield the steps, and end after the first that fails; raise nothing."""
        ...


@runtime_checkable
class TrialCheckingBackend(Protocol):
    """A backend that can say before a submit whether its place would take a trial."""

    def check_trial(self, trial: TrialSpec) -> Sequence[str]:
        """Make sure that the trial can run, and return notes, a line each.

        Raises:
            BackendError: It would not; names all that is missing or wrong.
        """
        ...


@runtime_checkable
class ManifestBackend(Protocol):
    """A backend whose trials are objects of a cluster, that other tools can make too."""

    def manifest_text(self, trial: TrialSpec) -> str:
        """Return all objects of a trial as YAML that `kubectl apply -f` takes.

        Of secrets it has the names only.

        Raises:
            BackendError: The trial cannot run as such objects alone.
        """
        ...


@runtime_checkable
class HostKeyBackend(Protocol):
    """A backend whose nodes must be trusted before they are connected to."""

    def host_key(self, node: str) -> tuple[str, str]:
        """Return the type and the fingerprint of the key that a node shows now.

        Raises:
            BackendUnavailableError: It cannot be reached.
        """
        ...

    def trust(self, node: str, fingerprint: str) -> str:
        """Trust the key that a node shows, if it has this fingerprint, and return the file that knows it now.

        Raises:
            BackendUnavailableError: It has another one, or the node cannot be reached.
        """
        ...
