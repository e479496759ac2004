"""The output files of a trial: what it wrote where it ran, and what it returned; copied without losing other files."""

from __future__ import annotations

import errno
import filecmp
import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jupyter_autotrain.client import elsewhere
from jupyter_autotrain.core import files, wire
from jupyter_autotrain.core.sizes import format_bytes
from jupyter_autotrain.core.text_format import count
from jupyter_autotrain.errors import AutotrainError

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
    """The output files of a trial so far.

    Left out are links (those that came with the trial are the shipped files) and unchanged copies of shipped files.

    Args:
        directory: The trial directory.
        shipped: The bundle's `files/`.
        written_only: Leave out what `returns:` names, and pictures.
    """
    written = {name: f"{wire.WORK}/{name}" for name in _made(directory / wire.WORK)}
    returned = {} if written_only else {name: f"{wire.OUTPUTS}/{name}" for name in _made(directory / wire.OUTPUTS)}
    named = written | {place if name in written else name: place for name, place in returned.items()}
    found = [Output(name, source, (directory / source).lstat().st_size) for name, source in sorted(named.items())]
    found += _still_there(directory, written_only=written_only)
    if shipped is None:
        return found
    return [one for one in found if one.is_elsewhere or not _is_unchanged(directory / one.source, shipped / one.name)]


def _still_there(directory: Path, *, written_only: bool) -> list[Output]:
    found = []
    for source, size_bytes in sorted(elsewhere.sizes(directory).items()):
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
    """Whether another file lies at the target; a link is refused when the file is written."""
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
    """The regular files that a trial made in a folder."""
    if folder.is_symlink() or not folder.is_dir():
        return []
    paths = [path for path, kind in files.walk(str(folder)) if kind == stat.S_IFREG]
    return [path for path in paths if "__pycache__" not in path.split("/") and not path.endswith(".draft")]


def _is_unchanged(path: Path, shipped: Path) -> bool:
    """Whether a file is an unchanged copy of a shipped one: a copy keeps the modification time of the original."""
    if not shipped.is_file():
        return False
    copied = path.lstat()
    original = shipped.stat()
    return (copied.st_size, copied.st_mtime_ns) == (original.st_size, original.st_mtime_ns)
