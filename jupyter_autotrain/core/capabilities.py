"""The abilities of a backend: its flags, the interval at which its jobs are polled, and methods that it may offer."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The abilities of a backend. An experiment that asks for one that its backend lacks is refused before submit.

    Attributes:
        multi_node: Runs a trial on several nodes (`resources.nodes`).
        elastic_nodes: An elastic trial on several nodes goes on when one of them is lost.
        multi_worker: Starts several workers of a trial on a node (`resources.workers_per_node`).
        artifacts: Brings files back: `fetch` works, and so does `returns:`.
        survives_manager: Trials go on when the process ends that called `submit`; else `submit` runs them.
        gpu_slots: Gives a trial the accelerators of its placement, and no others (`resources.gpus`).
        limits_memory: Ends a trial that takes more than `resources.memory`.
        limits_cpu: Gives a trial no more than `resources.cpus`.
        secrets: Passes secrets to a trial without storing them.
        shares_home: Trials run in the home's own trial directories, so their files need not be copied.
        queues: Queues trials by itself: the manager submits all at once and chooses no nodes.
        follows_files: Reads any file of a running trial as it grows, as a session needs; else its streams alone.
        keeps_output: Leaves at its place what a trial prints until it is asked for, as a federated training needs.
        pushes: Tells when there is something new of a job (`PushingBackend`), so that polling is only a safeguard.
    """

    multi_node: bool = False
    elastic_nodes: bool = True
    multi_worker: bool = False
    artifacts: bool = True
    survives_manager: bool = True
    gpu_slots: bool = False
    limits_memory: bool = False
    limits_cpu: bool = False
    secrets: bool = False
    shares_home: bool = False
    queues: bool = False
    follows_files: bool = True
    keeps_output: bool = True
    pushes: bool = False


@dataclass(frozen=True, slots=True)
class PollInterval:
    """The time between two polls of a job: a share of the job's age, within bounds.

    So a trial of milliseconds is seen immediately, and a trial of hours is polled rarely.

    Attributes:
        least_s, most_s: The bounds.
        age_share: The share of the job's age.
        unknown_most_s: The upper bound while the state of the job, or of the whole backend, is not known.
    """

    least_s: float = 0.005
    most_s: float = 0.1
    age_share: float = 0.1
    unknown_most_s: float = 2.0

    def after_s(self, age_s: float, *, known: bool = True) -> float:
        """Return the seconds until the next poll of a job.

        Args:
            age_s: How long it has been watched; where its state is not known, for how long.
            known: Whether its state is known.
        """
        most_s = self.most_s if known else self.unknown_most_s
        return min(max(age_s * self.age_share, self.least_s), most_s)


@runtime_checkable
class LeftoverBackend(Protocol):
    """A backend whose place keeps objects of a home, which can be told from those of others."""

    def leftovers(self, experiments: Collection[str]) -> Sequence[str]:
        """Return the things there of this home that belong to none of these experiments.

        An example is `Job autotrain-x in namespace lab`.

        Args:
            experiments: Ids of the experiments that may still need what is theirs.

        Raises:
            BackendError: The place cannot be asked.
        """
        ...

    def remove_leftovers(self, experiments: Collection[str]) -> Sequence[str]:
        """Remove the things that `leftovers` finds, and return those that were removed.

        Raises:
            BackendError: The place cannot be asked, or refuses.
        """
        ...


@runtime_checkable
class TrialFilesBackend(Protocol):
    """A backend whose trial directories lie at its place, outside of the home."""

    def experiments_there(self) -> Mapping[str, int]:
        """Return the experiments of this home that have trial directories there, with the bytes of each.

        None of them runs.

        Raises:
            BackendError: The place cannot be asked.
        """
        ...

    def remove_experiments(self, experiments: Collection[str]) -> None:
        """Delete the trial directories of these experiments, but for those of trials that run.

        Raises:
            BackendError: The place cannot be asked, or refuses.
        """
        ...
