"""Files of ended trials that are still where these ran: listed, and brought here with progress, resumed after a cut."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path

from jupyter_autotrain import backends
from jupyter_autotrain.core import files, wire
from jupyter_autotrain.core.backend import Backend, BackendContext, JobRef
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.records import TrialRecord
from jupyter_autotrain.core.sizes import format_bytes
from jupyter_autotrain.core.spec import ExperimentSpec
from jupyter_autotrain.errors import AutotrainError

_TELL_EVERY_S = 2.0
_PART = ".part"
FetchProgress = Callable[[str], object]


def sizes(directory: Path) -> dict[str, int]:
    """The files of a trial that are still elsewhere, by their paths in its directory, with their bytes."""
    try:
        found = files.read_json(directory, wire.ELSEWHERE_FILE)
    except (OSError, ValueError):
        return {}
    return {str(path): int(size) for path, size in found.items()} if isinstance(found, dict) else {}


def bring(home: Home, spec: ExperimentSpec, trial: TrialRecord, directory: Path, show: FetchProgress) -> None:
    """Copy all that is elsewhere into the trial's directory here; what was cut goes on where it ended.

    Args:
        home: The home.
        spec: The trial's experiment.
        trial: The trial.
        directory: Its directory in the home.
        show: Called with a line about the progress.

    Raises:
        AutotrainError: The backend cannot be reached, or a file is not there any more.
    """
    left = sizes(directory)
    if not left:
        return
    ref = trial.ref
    if ref is None:
        raise AutotrainError(f"Where trial {trial.number} ran is unknown.", "", "Run it again.")
    backend = backends.create(spec.choice(trial.placement.backend).profile, BackendContext(home))
    try:
        fetching = _Fetching(directory, sum(left.values()), show)
        for path, size in sorted(left.items(), key=lambda one: one[1]):
            fetching.fetch(backend, ref, path, size)
            rest = {name: bytes_ for name, bytes_ in sizes(directory).items() if name != path}
            wire.write_atomically(str(directory / wire.ELSEWHERE_FILE), json.dumps(rest).encode())
    finally:
        backend.close()


class _Fetching:
    """Fetches files one after the other, and tells how far it is.

    Args:
        directory: The trial's directory in the home.
        total_bytes: Of all files.
        show: Called with a line about the progress.
    """

    def __init__(self, directory: Path, total_bytes: int, show: FetchProgress) -> None:
        self._directory = directory
        self._total_bytes = total_bytes
        self._show = show
        self._done_bytes = 0
        self._begun_s = time.monotonic()
        self._before_bytes: int | None = None

    def fetch(self, backend: Backend, ref: JobRef, path: str, size_bytes: int) -> None:
        """Fetch one file.

        Raises:
            AutotrainError: It cannot be had, or is not as large as it was.
        """
        target = self._directory / path
        ended = threading.Event()
        telling = threading.Thread(target=self._tell_until, args=(ended, target), daemon=True)
        telling.start()
        try:
            backend.fetch(ref, path, str(target))
        finally:
            ended.set()
            telling.join()
        if target.lstat().st_size != size_bytes:
            raise AutotrainError(
                f"{path} came with {format_bytes(target.lstat().st_size)}.",
                f"It had {format_bytes(size_bytes)} when the trial ended.",
                "Something there has changed it; look at the host.",
            )
        self._done_bytes += size_bytes

    def _tell_until(self, ended: threading.Event, target: Path) -> None:
        part = target.with_name(f"{target.name}{_PART}")
        while not ended.wait(_TELL_EVERY_S):
            here_bytes = self._done_bytes + (part.lstat().st_size if part.exists() else 0)
            if self._before_bytes is None:
                self._before_bytes = here_bytes
            self._show(self._line(here_bytes, target.name))

    def _line(self, here_bytes: int, name: str) -> str:
        rate = (here_bytes - (self._before_bytes or 0)) / (time.monotonic() - self._begun_s)
        text = f"{name}: {format_bytes(here_bytes)} of {format_bytes(self._total_bytes)}, {format_bytes(rate)}/s"
        return f"{text}, {(self._total_bytes - here_bytes) / rate:.0f} s left" if rate else text
