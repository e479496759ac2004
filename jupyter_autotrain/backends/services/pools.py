"""The trials of a pool, in the storage that jobs of a service have mounted; see `reuse`.

Pilots take trials from one folder where the storage can rename, which succeeds for one of them alone. A blob store
cannot: there each pilot has a folder of its own, and who looks after the pool gives it one trial at a time.
"""

from __future__ import annotations

import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final

from jupyter_autotrain.agent.pods import service_job
from jupyter_autotrain.agent.pool.pilot import PILOTS
from jupyter_autotrain.agent.pool.waiting import TAKEN, WAITING
from jupyter_autotrain.backends.services.folder_storage import FolderStorage

POOLS: Final = "pools"
_OF_TRIAL = re.compile(r"-(\d+)-\d+-[0-9a-f]+")


def entry_of(name: str) -> str:
    """Return the name of the entry of a trial: in the order of these, by the numbers of trials, they are taken."""
    found = _OF_TRIAL.search(name)
    return f"{int(found[1]) if found else 0:07}{service_job.ENTRY_END}{name}"


def begun_by(storage: FolderStorage, name: str) -> str:
    """Return the pilot that has begun a trial; "" where none has."""
    return next(iter(storage.names(f"jobs/{name}/{service_job.BEGUN}")), "")


class Pool(ABC):
    """A pool.

    Args:
        storage: Where it lies.
        name: Its name.

    Attributes:
        path: Its folder.
    """

    has_own_logs = True  # of its trials, in the storage; else they are in the log of their pilot

    def __init__(self, storage: FolderStorage, name: str) -> None:
        self._storage = storage
        self.path = f"{POOLS}/{name}"

    @abstractmethod
    def source_of(self, pilot: str) -> str:
        """Return the folder whose `waiting` a pilot takes trials from."""

    @abstractmethod
    def add(self, name: str, content: bytes) -> None:
        """Let a trial wait."""

    @abstractmethod
    def withdraw(self, name: str) -> bool:
        """Have a trial wait no more; return False where a pilot has it."""

    @abstractmethod
    def share_out(self, free: Collection[str]) -> None:
        """Give trials that wait to pilots that run and have none."""

    @abstractmethod
    def alone(self) -> AbstractContextManager[bool]:
        """Look after the pool; yields whether nobody else does meanwhile."""

    @abstractmethod
    def held_by(self, pilot: str) -> list[str]:
        """Return the entries that a pilot has."""

    @abstractmethod
    def take_back(self, pilot: str, entry: str) -> None:
        """Let a trial wait again that a pilot had."""

    def waiting(self) -> list[str]:
        """Return the entries of trials that no pilot has, in the order in which they are to run."""
        return self._storage.names(f"{self.path}/{WAITING}")

    def pilots(self) -> list[str]:
        """Return the pilots that have not been seen to have ended."""
        return self._storage.names(f"{self.path}/{PILOTS}")

    def taken_by(self, pilot: str) -> list[str]:
        """Return the entries that a pilot has taken, and not ended yet."""
        return [name[len(TAKEN) :] for name in self._storage.names(f"jobs/{pilot}") if name.startswith(TAKEN)]

    def holder_of(self, name: str) -> str:
        """Return the pilot that has a trial; "" where none has."""
        return next((pilot for pilot in self.pilots() if entry_of(name) in self.held_by(pilot)), "")

    def settle(self, pilot: str) -> None:
        """Let the trials wait again that a pilot had and has not begun, as it has ended."""
        for entry in self.held_by(pilot):
            if not begun_by(self._storage, name_of(entry)):
                self.take_back(pilot, entry)
        self.forget(pilot)

    def forget(self, pilot: str) -> None:
        """Remove what a pilot has in the storage."""
        self._storage.remove_folder(f"jobs/{pilot}")
        self._storage.remove(f"{self.path}/{PILOTS}/{pilot}")


def name_of(entry: str) -> str:
    """Return the name of the trial of an entry."""
    return entry.partition(service_job.ENTRY_END)[2]


class GivenTrials(Pool):
    """A pool whose pilots are given one trial at a time.

    A trial is removed last from where it was, so one may be at two places: it waits only where no pilot has it.

    Args:
        storage: Where it lies.
        name: Its name.
        lock: Keeps out other threads: a home has one manager.
    """

    has_own_logs = False

    def __init__(self, storage: FolderStorage, name: str, lock: threading.Lock) -> None:
        super().__init__(storage, name)
        self._lock = lock

    def source_of(self, pilot: str) -> str:
        """Return the folder of the pilot itself."""
        return f"jobs/{pilot}"

    @contextmanager
    def alone(self) -> Iterator[bool]:
        """Keep out other threads."""
        is_alone = self._lock.acquire(blocking=False)
        try:
            yield is_alone
        finally:
            if is_alone:
                self._lock.release()

    def add(self, name: str, content: bytes) -> None:
        """Write its entry."""
        self._storage.write(f"{self.path}/{WAITING}/{entry_of(name)}", content)

    def withdraw(self, name: str) -> bool:
        """Remove its entry, also that of a pilot that has not taken it."""
        entry = entry_of(name)
        with self._lock:
            waited = self._storage.remove(f"{self.path}/{WAITING}/{entry}")
            given = [self._storage.remove(f"{self.source_of(pilot)}/{WAITING}/{entry}") for pilot in self.pilots()]
            return any(given) or (waited and not self.holder_of(name) and not begun_by(self._storage, name))

    def held_by(self, pilot: str) -> list[str]:
        """Return what it was given, and what it has taken of that."""
        given = self._storage.names(f"{self.source_of(pilot)}/{WAITING}")
        return sorted({*given, *self.taken_by(pilot)})

    def share_out(self, free: Collection[str]) -> None:
        """Give each one the next trial."""
        left = sorted(free)
        held = {entry for pilot in self.pilots() for entry in self.held_by(pilot)} if left else set()
        for entry in self.waiting() if left else ():
            path = f"{self.path}/{WAITING}/{entry}"
            if entry not in held and not begun_by(self._storage, name_of(entry)):
                if not left:
                    return
                content = self._storage.read(path)
                if content is None:
                    continue
                self._storage.write(f"{self.source_of(left.pop(0))}/{WAITING}/{entry}", content)
            self._storage.remove(path)

    def take_back(self, pilot: str, entry: str) -> None:
        """Copy its entry back; the folder of the pilot is removed afterwards."""
        for path in (f"{self.source_of(pilot)}/{WAITING}/{entry}", f"jobs/{pilot}/{TAKEN}{entry}"):
            content = self._storage.read(path)
            if content is not None:
                self._storage.write(f"{self.path}/{WAITING}/{entry}", content)
                return
