"""The output files of a trial: what it wrote where it ran, and what it returned; copied without losing other files."""

from __future__ import annotations

import errno
import filecmp
import json
import os
import pickle
import stat
import threading
import time
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jupyter_autotrain import backends
from jupyter_autotrain.agent import files, wire
from jupyter_autotrain.agent.sizes import format_bytes
from jupyter_autotrain.core.backend import Backend, BackendContext, JobRef
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.records import TrialRecord
from jupyter_autotrain.core.spec import ExperimentSpec
from jupyter_autotrain.core.text_format import count, cut
from jupyter_autotrain.errors import AutotrainError


def unpickle(directory: Path, name: str) -> object:
    """Return an object that the trial returned. Reading a pickle runs code that its writer chose.

    Raises:
        AutotrainError: It is not there, or cannot be rebuilt here.
    """
    outputs, name = directory / wire.OUTPUTS, unicodedata.normalize("NFKC", name)  # as Python itself reads names
    try:
        if not name.isidentifier():
            raise files.NotRegularError(name, "no path inside the folder")
        file = files.open_regular(directory, f"{wire.OUTPUTS}/{name}.pkl")
    except OSError as error:
        raise _not_returned(outputs, name, "" if files.is_absent(error) else f": {error.strerror}") from None
    try:
        with file:
            return pickle.load(file)  # noqa: S301 - written by the user's own trial, in the user's private folder
    except Exception as error:
        raise AutotrainError(
            f"{name!r} cannot be rebuilt here: {type(error).__name__}: {error}.",
            "The classes it is made of must be importable or defined here.",
            "Import or define them in this notebook, then load again.",
        ) from error


def has_returned(directory: Path, name: str) -> bool:
    """Return True when the trial has returned an object of this name."""
    return unicodedata.normalize("NFKC", name) in _returned(directory / wire.OUTPUTS)


def _returned(outputs: Path) -> list[str]:
    return sorted(file.stem for file in outputs.glob("*.pkl") if not file.is_symlink())


def _not_returned(outputs: Path, name: str, why: str) -> AutotrainError:
    names = _returned(outputs)
    return AutotrainError(
        f"The trial has not returned {cut(name, 60)!r}{why}.",
        f"It returned: {', '.join(names)}." if names else "It has returned nothing so far.",
        f"Name it in the header: 'returns: [{cut(name, 60)}]', and see how the trial ended: %autotrain why",
    )


_TELL_EVERY_S = 2.0
_PART = ".part"
FetchProgress = Callable[[str], object]


def sizes(directory: Path) -> dict[str, int]:
    """Return the files of a trial that are still elsewhere, by their paths in its directory, with their bytes."""
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
    with closing(backends.create(spec.choice(trial.placement.backend).profile, BackendContext(home))) as backend:
        fetching = _Fetching(directory, sum(left.values()), show)
        for path, size in sorted(left.items(), key=lambda one: one[1]):
            fetching.fetch(backend, ref, path, size)
            rest = {name: bytes_ for name, bytes_ in sizes(directory).items() if name != path}
            wire.write_atomically(str(directory / wire.ELSEWHERE_FILE), json.dumps(rest).encode())


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


MOST_FILES: Final = 10_000
MOST_BYTES: Final = 20_000_000_000
_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class Output:
    """An output file of a trial.

    Attributes:
        name: Its place in the folder that it is copied to: as the cell wrote it, relative to the notebook.
        source: Its place in the trial directory.
        size_bytes: Its size.
        is_elsewhere: Whether it is still where the trial ran.
    """

    name: str
    source: str
    size_bytes: int
    is_elsewhere: bool = False


def find(directory: Path, shipped: Path | None = None, *, written_only: bool = False) -> list[Output]:
    """Return the output files of a trial so far.

    Left out are links (those that came with the trial are the shipped files) and unchanged copies of shipped files.

    Args:
        directory: The trial directory.
        shipped: The bundle's `files/`.
        written_only: Leave out what `returns:` names, and pictures.
    """
    named = {name: f"{wire.WORK}/{name}" for name in _made(directory / wire.WORK)}
    for name in () if written_only else _made(directory / wire.OUTPUTS):
        source = f"{wire.OUTPUTS}/{name}"
        named[source if name in named else name] = source
    found = [Output(name, source, (directory / source).lstat().st_size) for name, source in sorted(named.items())]
    found += _still_there(directory, written_only=written_only)
    if shipped is None:
        return found
    return [one for one in found if one.is_elsewhere or not _is_unchanged(directory / one.source, shipped / one.name)]


def _still_there(directory: Path, *, written_only: bool) -> list[Output]:
    found = []
    for source, size_bytes in sorted(sizes(directory).items()):
        folder, _, name = source.partition("/")
        if folder == wire.WORK or not written_only:
            found.append(Output(name, source, size_bytes, is_elsewhere=True))
    return found


def copy(directory: Path, target: Path, outputs: Sequence[Output], *, overwrite: bool = False) -> list[str]:
    """Copy files into a folder, each whole or not at all; nothing is written through a link.

    Args:
        directory: The trial directory.
        target: The folder; made when missing.
        outputs: The files.
        overwrite: Whether other files of the same names may be replaced.

    Returns:
        Their names in the folder.

    Raises:
        AutotrainError: They are too many or too big, or other files lie there, or the folder cannot be written.
    """
    _check_size(directory, outputs)
    if not overwrite:
        _check_free(directory, target, outputs)
    try:
        for one in outputs:
            _make_folders(target, Path(one.name))
        for one in outputs:
            _copy(directory, one, target / one.name)
    except OSError as error:
        raise AutotrainError(
            f"{error.filename or target} cannot be written: {error.strerror}.",
            "A folder that can be written, with no links in it.",
            "Choose another folder.",
        ) from error
    return [one.name for one in outputs]


def _check_size(directory: Path, outputs: Sequence[Output]) -> None:
    total_bytes = sum(one.size_bytes for one in outputs)
    if len(outputs) > MOST_FILES or total_bytes > MOST_BYTES:
        raise AutotrainError(
            f"The trial has left {count(len(outputs), 'file')}, {format_bytes(total_bytes)}.",
            f"At most {MOST_FILES} files and {format_bytes(MOST_BYTES)} are copied in one call.",
            f"Take what you need from {directory / wire.WORK}",
        )


def _check_free(directory: Path, target: Path, outputs: Iterable[Output]) -> None:
    others = [one.name for one in outputs if _is_other(directory / one.source, target / one.name)]
    if not others:
        return
    more = f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
    raise AutotrainError(
        f"{count(len(others), 'other file')} would be overwritten in {target}: {', '.join(others[:_SHOWN])}{more}.",
        "Nothing was copied, and these files are unchanged.",
        "Choose another folder (-o FOLDER), or replace them: --overwrite",
    )


def _is_other(source: Path, target: Path) -> bool:
    """Return whether another file lies at the target; a link is refused when the file is written."""
    if target.is_symlink() or not target.exists():
        return False
    return not target.is_file() or not filecmp.cmp(source, target, shallow=False)


def _copy(directory: Path, output: Output, target: Path) -> None:
    draft = target.with_name(f".{target.name}.{os.getpid()}.draft")
    try:
        files.copy_file(directory, output.source, str(draft))
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def _make_folders(target: Path, name: Path) -> None:
    """Make the folders of a file below the target; it and they may be no links."""
    target.mkdir(parents=True, exist_ok=True)
    for depth in range(1, len(name.parts) + 1):
        path = target.joinpath(*name.parts[:depth])
        if path.is_symlink():
            raise OSError(errno.ELOOP, "a link lies in the way", str(path))
        if depth < len(name.parts):
            path.mkdir(exist_ok=True)


def _made(folder: Path) -> list[str]:
    """Return the regular files that a trial made in a folder."""
    if folder.is_symlink() or not folder.is_dir():
        return []
    made: list[str] = []
    for path, kind in files.walk(str(folder)):
        is_left_out = "__pycache__" in path.split("/") or path.endswith(".draft")
        if kind == stat.S_IFREG and not is_left_out:
            made.append(path)
    return made


def _is_unchanged(path: Path, shipped: Path) -> bool:
    """Get whether a file is an unchanged copy of a shipped one: a copy keeps the modification time of the original."""
    if not shipped.is_file():
        return False
    copied = path.lstat()
    original = shipped.stat()
    return (copied.st_size, copied.st_mtime_ns) == (original.st_size, original.st_mtime_ns)
