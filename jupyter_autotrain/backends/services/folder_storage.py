"""The storage of a shared folder, as this machine reaches it: a mount, or a blob store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from jupyter_autotrain.core.backend_check import CheckStep, StepTimer


class FolderStorage(Protocol):
    """The folder, as this machine reaches it: paths are relative to it.

    Every method raises `OSError` where a mount fails, and `BackendError` where a service refuses.
    """

    look_again_s: float  # between two looks for an answer

    def check(self, timer: StepTimer) -> CheckStep:
        """Return the step that says whether this machine can write there; raise nothing."""
        ...

    def has(self, path: str) -> bool:
        """Return whether there is a file, or a folder that was written."""
        ...

    def write(self, path: str, content: bytes) -> None:
        """Write a file, wholly or not at all; its folder is there, or need not be."""
        ...

    def write_folder(self, path: str, content: Mapping[str, bytes]) -> None:
        """Write a folder of files, wholly or not at all; one that is there already is the same."""
        ...

    def make_folder(self, path: str) -> None:
        """Make a folder that jobs can write into."""
        ...

    def names(self, path: str) -> list[str]:
        """Return what a folder holds, in order, but for names that begin with a dot; none where it is not there."""
        ...

    def read(self, path: str) -> bytes | None:
        """Return a file; None where there is none."""
        ...

    def remove(self, path: str) -> bool:
        """Remove a file; return whether it was there."""
        ...

    def take(self, path: str) -> bytes | None:
        """Return a file and remove it; None where there is none."""
        ...

    def sizes(self, path: str) -> Mapping[str, int]:
        """Return the bytes of all files below a folder, by their paths in it; none where there is no such folder."""
        ...

    def remove_folder(self, path: str) -> None:
        """Remove a folder and all below it; one that is gone is passed over."""
        ...
