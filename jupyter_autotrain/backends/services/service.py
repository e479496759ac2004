"""The interface of a training service, as the one backend of all of them needs it.

A service starts a command under a name that it takes once, says how its jobs stand, gives their logs and stops them.
All else is the same everywhere: the trial is the agent's, and what it writes comes back in its job's log.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.services.package import TrialPackage
from jupyter_autotrain.core.backend import JobRef, Submission
from jupyter_autotrain.core.backend_check import CheckStep
from jupyter_autotrain.core.capabilities import Capabilities
from jupyter_autotrain.core.inventory import Inventory
from jupyter_autotrain.core.spec import Placement
from jupyter_autotrain.errors import BackendUnavailableError


class AnswerLostError(BackendUnavailableError):
    """The service got a request, or may have, and its answer did not come."""


@dataclass(frozen=True, slots=True)
class ServiceState:
    """The state of a job at its service.

    Attributes:
        state: PREPARING, RUNNING, or how it ended.
        reason: Why, in plain words; before the end the rest of a sentence that begins with the trial.
        where: What else `log`, `ask` and `stop` need to find the job.
    """

    state: TrialState
    reason: str = ""
    where: JsonObject | None = None


def nodes_of(ref: JobRef) -> int:
    """Return how many nodes a trial has."""
    return cast("int", ref.data.get("nodes") or 1)


class Service(Protocol):
    """A training service.

    Every method raises `BackendUnavailableError` where it does not answer now, and `BackendError` where it refuses.
    A trial on several nodes is a job of as many workers, each of which learns from its variables which node it is.
    """

    capabilities: Capabilities
    node_variables: Mapping[str, str]  # the names of those variables, as `agent.pods.rendezvous` reads them
    pause_s: float  # between two looks at its jobs
    settle_s: float  # how long a log may still come after the end of its job
    keeps_whole_log: bool  # else a job waits at its end until all of its trial is collected

    def check_steps(self) -> Iterator[CheckStep]:
        """Yield the steps before a trial can run there, and end after the first that fails; raise nothing."""
        ...

    def discover(self) -> Inventory:
        """Return its nodes."""
        ...

    def render(self, package: TrialPackage, placement: Placement) -> Submission:
        """Return exactly the requests that a submit makes; asks nobody."""
        ...

    def submit(self, package: TrialPackage, placement: Placement, secrets: Mapping[str, str]) -> None:
        """Start a job under the package's name; where there is one of that name already, it is the same one.

        Raises:
            AnswerLostError: Whether it was started is not known.
        """
        ...

    def states(self, refs: Sequence[JobRef]) -> Mapping[str, ServiceState]:
        """Return the states of jobs by their names; those that the service does not know are left out."""
        ...

    def log(self, ref: JobRef, state: ServiceState, lines: int | None, node: int) -> str:
        """Return the last lines of the log of a job's worker; all it has, for None."""
        ...

    def ask(self, ref: JobRef, state: ServiceState, request: JsonObject, node: int) -> JsonValue:
        """Have a running worker answer a request about its files, as `agent.pods.requests` does."""
        ...

    def release(self, ref: JobRef, *, waits: bool) -> None:
        """Let go of a job whose trial is collected: what was put anywhere for it goes, its record stays.

        Args:
            ref: The job.
            waits: Whether it waits for this before it ends.
        """
        ...

    def experiments_there(self, home: str) -> Mapping[str, int]:
        """Return the experiments of a home that its storage has something of, with the bytes of each."""
        ...

    def remove_experiments(self, home: str, experiments: Collection[str]) -> None:
        """Remove what its storage has of these experiments of a home."""
        ...

    def stop(self, ref: JobRef, state: ServiceState) -> str:
        """End a job, whatever it does; return what has to be said of that, or "".

        One that has ended is passed over.
        """
        ...
