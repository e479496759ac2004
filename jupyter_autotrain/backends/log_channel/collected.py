"""The files that have come back of a trial, on disk in the home: by byte offset, so nothing is lost nor doubled.

```
experiments/ID/PLACE/NUMBER-ATTEMPT/NODE/states       every content of its status file, one a line
                                         files.json   what it has left
                                         trial/       streams and files, as in its trial directory
```

Several processes may write here: each write looks at the length of the file, under a lock.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

from jupyter_autotrain.agent import durable, files, wire
from jupyter_autotrain.agent.pods import places
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.agent.trial import status as statuses
from jupyter_autotrain.agent.trial.status import Status
from jupyter_autotrain.backends.trial_content import from_last_saved, has_saved, in_home
from jupyter_autotrain.core.backend import BackendContext
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import TrialSpec

_STREAM = re.compile(r"(stdout|stderr|metrics)(-[0-9]+)?|usage|launcher")
_FOLDERS = frozenset({wire.OUTPUTS, wire.WORK, wire.CHECKPOINTS})
_OPEN = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
_PODS = "pods"  # the uids of those that were followed
_MOST_NODES = 10_000
_MOST_LISTING_BYTES = 64 << 20


def collected_folder(home: Home, job_id: str, place: str) -> Path:
    """Return where what comes back of a trial lies in the home.

    Args:
        home: The home.
        job_id: The trial.
        place: `kubernetes` or `services`.
    """
    experiment_id, number, attempt = job_id.rsplit("-", 2)
    return home.experiment(experiment_id) / place / f"{number}-{attempt}"


def saved_checkpoints(trial: TrialSpec, context: BackendContext, place: str) -> tuple[int, Path] | None:
    """Return the last attempt of a trial of which the home has checkpoints, and their folder there."""

    def collected(attempt: int) -> Path:
        return collected_folder(context.home, trial.job_id_of(attempt), place) / "0" / "trial" / wire.CHECKPOINTS

    found = from_last_saved(trial, context, lambda attempt: has_saved(collected(attempt)))
    if found.resume_attempt is None:
        return None
    folder = collected(found.resume_attempt)
    chosen = folder if has_saved(folder) else in_home(context, found)
    return (found.resume_attempt, chosen) if chosen else None


class GapError(Exception):
    """The error of missing bytes of a file, from `begin` to `end`."""

    def __init__(self, path: str, begin: int, end: int) -> None:
        super().__init__(f"bytes {begin} to {end} of {path} are missing")
        self.path = path
        self.begin = begin
        self.end = end


class CollectedNode:
    """The files that have come back of one node of a trial.

    Args:
        folder: Where it lies.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.directory = folder / "trial"
        self._sizes: dict[str, int] = {}
        self._status: Status | None = None
        self._status_bytes = -1
        self._listing: dict[str, object] | None = None

    def append(self, path: str, offset: int, data: bytes) -> bool:
        """Keep bytes of a file; what is there already is passed over.

        Returns:
            Whether any were new.

        Raises:
            GapError: What comes before them is missing.
            OSError: It cannot be written.
            ValueError: There is no place for such a path.
        """
        target = self._target(path)
        known = self._sizes.get(path, 0)
        if offset + len(data) <= known:
            return False
        files.make_directories(target.parent)
        fd = os.open(target, _OPEN, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            size = os.fstat(fd).st_size
            if offset > size:
                raise GapError(path, size, offset)
            new = data[size - offset :]
            written = 0
            while written < len(new):
                written += os.pwrite(fd, new[written:], size + written)
            self._sizes[path] = size + len(new)
            return bool(new)
        finally:
            os.close(fd)

    def _target(self, path: str) -> Path:
        if path in {places.STATES, places.FILES}:
            return self.folder / path
        parts = path.split("/")
        is_inside = not any(part in {"", ".", ".."} for part in parts)
        if is_inside and (_STREAM.fullmatch(path) or (len(parts) > 1 and parts[0] in _FOLDERS)):
            return self.directory / path
        raise ValueError(f"there is no place for {path!r}")

    def size(self, path: str) -> int:
        """Return how much of a file is here."""
        try:
            return self._target(path).lstat().st_size
        except OSError:
            return 0

    def status(self) -> Status | None:
        """Return the last status that has come; None where none has."""
        size = self.size(places.STATES)
        if size == self._status_bytes:
            return self._status
        with contextlib.suppress(OSError, ValueError):
            for line in reversed((self.folder / places.STATES).read_bytes().splitlines(keepends=True)):
                found = files.parse_json(line) if line.endswith(b"\n") else None
                if _is_status(found):
                    self._status = cast("Status", found)
                    break
        self._status_bytes = size
        return self._status

    def listing(self) -> dict[str, object] | None:
        """Return what the pod says it has left; None before all of that has come."""
        if self._listing is None:
            with contextlib.suppress(OSError, ValueError):
                data = files.read(self.folder, places.FILES, _MOST_LISTING_BYTES)
                found = json.loads(data) if data.endswith(b"\n") else None
                self._listing = self._without_invented(found) if isinstance(found, dict) else None
        return self._listing

    def _without_invented(self, found: Mapping[str, object]) -> dict[str, object]:
        """Return a listing without what only a trial itself can have written into its log."""
        named = found.get("sizes")
        sizes = {}
        for path, size in named.items() if isinstance(named, Mapping) else ():
            with contextlib.suppress(ValueError):
                self._target(str(path))
                sizes[str(path)] = size if isinstance(size, int) else 0
        left = found.get("left")
        return {"sizes": sizes, "left": [path for path in left if path in sizes] if isinstance(left, list) else []}

    def missing(self) -> Iterator[tuple[str, int, int]]:
        """Yield the files that have not wholly come: path, how much is here, how much there is."""
        listing = self.listing() or {}
        sizes = cast("dict[str, int]", listing.get("sizes") or {})
        for path, size in sizes.items():
            have = self._sizes.get(path, -1)
            have = self.size(path) if have < size else have
            if have < size:
                yield path, have, size

    def make_empty_files(self) -> None:
        """Make those that have no bytes, of which no frame comes.

        Raises:
            OSError: They cannot be made.
        """
        for path, size in cast("dict[str, int]", (self.listing() or {}).get("sizes") or {}).items():
            with contextlib.suppress(ValueError):  # a path that the trial has made up
                target = self._target(path)
                if size == 0 and not target.exists() and "/" in path:
                    files.make_directories(target.parent)
                    target.touch(mode=0o600)

    @property
    def left(self) -> set[str]:
        """The files that are not in the pod's log."""
        listing = self.listing() or {}
        return set(cast("list[str]", listing.get("left") or []))

    def has_ended(self) -> bool:
        """Return whether all that the pod's log says has come."""
        return self.listing() is not None and not any(path not in self.left for path, _, _ in self.missing())


def _is_status(found: object) -> bool:
    """Return whether it is what a supervisor writes: a trial can write anything into its log."""
    if not isinstance(found, dict) or found.get("state") not in set(TrialState):
        return False
    return isinstance(found.get("reason"), str)


class CollectedTrial:
    """The files that have come back of a trial.

    Args:
        folder: Where it lies.
        nodes: How many nodes the trial has.
    """

    def __init__(self, folder: Path, nodes: int = 1) -> None:
        self.folder = folder
        self.nodes = [CollectedNode(folder / str(number)) for number in range(nodes)]

    @property
    def directory(self) -> Path:
        """Return what is like the trial directory of its first node."""
        return self.nodes[0].directory

    def node(self, number: int) -> CollectedNode:
        """Return one of its nodes; an elastic trial may get more than it began with."""
        while len(self.nodes) <= min(number, _MOST_NODES):
            self.nodes.append(CollectedNode(self.folder / str(len(self.nodes))))
        return self.nodes[number]

    def pods(self) -> list[str]:
        """Return the uids of the pods that were followed, also by an earlier manager."""
        with contextlib.suppress(OSError):
            return (self.folder / _PODS).read_text(encoding="ascii").split()
        return []

    def note_pod(self, uid: str) -> None:
        """Remember a pod that is followed.

        Raises:
            OSError: It cannot be written.
        """
        if uid not in self.pods():
            files.make_directories(self.folder)
            with open(self.folder / _PODS, "a", encoding="ascii", opener=files.private_opener) as file:
                file.write(f"{uid}\n")

    def has_ended(self) -> bool:
        """Return whether everything of all nodes has come."""
        return all(node.has_ended() for node in self.nodes)

    def final_status(self) -> Status | None:
        """Return the status that `close` has written."""
        with contextlib.suppress(statuses.UnknownError):
            return statuses.read(self.directory)
        return None

    def close(self, status: Status) -> None:
        """Write the final status: from now on this place says how the trial ended; errors as `sync`."""
        self.sync()
        files.make_directories(self.directory)
        statuses.write(self.directory, status)

    def sync(self) -> None:
        """Have all that has come on the disk.

        Raises:
            OSError: It cannot be written.
        """
        for node in self.nodes:
            node.make_empty_files()
        for path in self.folder.rglob("*"):
            if path.is_file():
                with path.open("rb") as file:
                    durable.sync(file.fileno())
