"""A pool in a mounted storage, whose pilots take trials by themselves; see `agent.pool`."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress

from jupyter_autotrain.agent import files
from jupyter_autotrain.agent.pool.pilot import PILOTS
from jupyter_autotrain.agent.pool.waiting import TAKEN, WaitingTrials
from jupyter_autotrain.backends.services.mounted_storage import MountedStorage
from jupyter_autotrain.backends.services.pools import Pool, entry_of


class SharedTrials(Pool):
    """A pool whose pilots take trials by renaming, so they go on without their manager.

    Args:
        storage: Where it lies.
        name: Its name.
    """

    def __init__(self, storage: MountedStorage, name: str) -> None:
        super().__init__(storage, name)
        self._root = storage.path
        self._trials = WaitingTrials(storage.path / self.path)

    def source_of(self, pilot: str) -> str:  # noqa: ARG002 - all take from one
        """Return the folder of the pool."""
        return self.path

    @contextmanager
    def alone(self) -> Iterator[bool]:
        """Keep out other threads and processes."""
        folder = self._root / self.path
        files.make_directories(folder / PILOTS)
        fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            is_alone = False
            with suppress(BlockingIOError):
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                is_alone = True
            yield is_alone
        finally:
            os.close(fd)

    def waiting(self) -> list[str]:
        """Return the entries that no pilot has taken."""
        return self._trials.names()

    def add(self, name: str, content: bytes) -> None:
        """Write its entry, also where a pilot that leaves removes the folder meanwhile."""
        files.make_directories(self._root / self.path)
        self._trials.add(lambda: self._trials.put(entry_of(name), content, sync=False))

    def withdraw(self, name: str) -> bool:
        """Remove its entry."""
        return self._trials.withdraw(entry_of(name))

    def held_by(self, pilot: str) -> list[str]:
        """Return what it has taken."""
        return self.taken_by(pilot)

    def share_out(self, free: Collection[str]) -> None:
        """Give none: pilots take them."""

    def take_back(self, pilot: str, entry: str) -> None:
        """Move its entry back."""
        self._trials.open()
        (self._root / "jobs" / pilot / f"{TAKEN}{entry}").rename(self._trials.file(entry))
