"""What a backend may offer besides `Backend`, so that what nobody needs any more at a place is found and removed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol, runtime_checkable


@runtime_checkable
class LeftoverBackend(Protocol):
    """A backend whose place keeps objects of a home, which can be told from those of others."""

    def leftovers(self, experiments: Collection[str]) -> Sequence[str]:
        """What is there of this home and of none of these experiments, such as `Job autotrain-x in namespace lab`.

        Args:
            experiments: Ids of the experiments that may still need what is theirs.

        Raises:
            BackendError: The place cannot be asked.
        """
        ...

    def remove_leftovers(self, experiments: Collection[str]) -> Sequence[str]:
        """Remove what `leftovers` finds; gives what was removed.

        Raises:
            BackendError: The place cannot be asked, or refuses.
        """
        ...


@runtime_checkable
class TrialFilesBackend(Protocol):
    """A backend whose trial directories lie at its place, outside of the home."""

    def experiments_there(self) -> Mapping[str, int]:
        """The experiments of this home that have trial directories there, and the bytes of each; none that runs.

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
