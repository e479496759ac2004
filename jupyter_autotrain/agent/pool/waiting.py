"""The trials that wait for a pilot, as files of a folder; see `agent.pool`."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable

from jupyter_autotrain.agent import fields, files, wire

TAKEN = "taken-"
RAN = "ran"
WAITING = "waiting"
_GIVEN = "given-"  # begins the name of an entry on its way there


class WaitingTrials:
    """The trials that wait.

    Args:
        folder: The folder of the pool; entries lie in `waiting` there.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = os.fspath(folder)
        self.path = f"{self._folder}/{WAITING}"

    def open(self) -> None:
        """Have trials be taken from now on."""
        os.makedirs(self.path, mode=0o700, exist_ok=True)

    def close(self) -> bool:
        """Take no trial any more, unless one has come at the last moment; return False then."""
        try:
            os.rmdir(self.path)
        except FileNotFoundError:  # another pilot has
            return True
        except OSError:
            return False
        return True

    def names(self) -> list[str]:
        """Return the names of those that wait, in the order in which they are to run."""
        with contextlib.suppress(OSError):
            return sorted(name for name in os.listdir(self.path) if not name.startswith("."))  # as NFS makes them
        return []

    def file(self, name: str) -> str:
        """Return the path of the entry of a trial while it waits; a pilot takes it by renaming it."""
        return f"{self.path}/{name}"

    def put(self, name: str, entry: bytes, *, sync: bool = True) -> None:
        """Let a trial wait.

        Args:
            name: The name of the trial.
            entry: Its entry.
            sync: The entry outlives the machine.

        Raises:
            FileNotFoundError: No trial is taken any more.
        """
        draft = f"{self._folder}/{_GIVEN}{name}"  # outside: no pilot takes half an entry, nor stays for one
        wire.write_atomically(draft, entry, sync=sync)
        try:
            os.rename(draft, self.file(name))
        except OSError:
            os.unlink(draft)
            raise

    def add(self, add: Callable[[], object]) -> None:
        """Let a trial wait by `add`, also where a pilot that leaves removes the folder meanwhile. Errors as `add`."""
        for is_last in (False, False, True):
            self.open()
            try:
                add()
            except FileNotFoundError:
                if is_last:
                    raise
            else:
                return

    def withdraw(self, name: str) -> bool:
        """Have a trial wait no more; return False when a pilot has it."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.file(name))
            return True
        return False


def read_entry(path: str) -> dict[str, object]:
    """Return an entry; one that is damaged is empty.

    Raises:
        OSError: It is not there, as when it was taken meanwhile.
    """
    with files.open_regular(*os.path.split(path)) as file:
        data = file.read()
    try:
        return dict(fields.mapping(files.parse_json(data)))
    except ValueError:
        return {}


def give(folder: str, name: str, entry: bytes) -> None:
    """Give a trial to the one pilot of a folder; one that it was given before is left alone.

    Args:
        folder: The folder of the pilot, which is also that of its pool.
        name: The name of the trial.
        entry: The entry.

    Raises:
        OSError: The pilot takes no trial any more, or the entry cannot be written.
        ValueError: The entry is no JSON, as where a part of it got lost.
    """
    files.parse_json(entry)
    waiting = WaitingTrials(folder)
    with open(f"{folder}/{RAN}", "a+", encoding="utf-8") as ran:
        fcntl.flock(ran, fcntl.LOCK_EX)  # no other one gives a trial meanwhile
        # looked for in the direction in which the pilot moves it: it is seen wherever it is at that moment
        if os.path.exists(waiting.file(name)) or os.path.exists(f"{folder}/{TAKEN}{name}"):
            return
        ran.seek(0)
        if name in ran.read().splitlines():
            return
        try:
            waiting.put(name, entry)
        except FileNotFoundError as error:
            raise OSError("it takes no trial: it has waited for one for long enough, and ends") from error
