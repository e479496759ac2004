"""The files of an experiment in the home: outputs and sizes."""

from __future__ import annotations

import errno
import pickle
import stat
import unicodedata
from pathlib import Path

from jupyter_autotrain.core import files, wire
from jupyter_autotrain.core.wording import cut
from jupyter_autotrain.errors import AutotrainError


def unpickle(directory: Path, name: str) -> object:
    """An object that the trial returned (`returns:`). Reading a pickle runs code that its writer chose.

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
    """True when the trial has returned an object of this name."""
    return unicodedata.normalize("NFKC", name) in _returned(directory / wire.OUTPUTS)


def _returned(outputs: Path) -> list[str]:
    return sorted(file.stem for file in outputs.glob("*.pkl") if not file.is_symlink())


def _not_returned(outputs: Path, name: str, why: str) -> AutotrainError:
    there = _returned(outputs)
    return AutotrainError(
        f"The trial has not returned {cut(name, 60)!r}{why}.",
        f"It returned: {', '.join(there)}." if there else "It has returned nothing so far.",
        f"Name it in the header: 'returns: [{cut(name, 60)}]', and look with '%autotrain why' how the trial ended.",
    )


def copy_outputs(directory: Path, target: Path) -> list[str]:
    """Copy what a trial returned, and the files it wrote where it ran, into a folder; gives their names in it.

    Links are not copied: those that came with the trial are the shipped files. Nothing is written through a link.

    Raises:
        AutotrainError: The folder cannot be written, or a link lies in the way.
    """
    found = {name: folder for folder in (wire.WORK, wire.OUTPUTS) for name in _made(directory / folder)}
    try:
        for name, folder in found.items():
            _make_folder(target, Path(name).parent)
            files.copy_file(directory, f"{folder}/{name}", str(target / name))
    except OSError as error:
        raise AutotrainError(
            f"{error.filename or target} cannot be written: {error.strerror}.",
            "A folder that can be written, with no links in it.",
            "Choose another folder.",
        ) from error
    return sorted(found)


def _make_folder(target: Path, inner: Path) -> None:
    """Make a folder below the target, through real folders only."""
    target.mkdir(parents=True, exist_ok=True)
    for depth in range(len(inner.parts)):
        folder = target.joinpath(*inner.parts[: depth + 1])
        if folder.is_symlink():
            raise OSError(errno.ELOOP, "a link lies in the way", str(folder))
        folder.mkdir(exist_ok=True)


def _made(folder: Path) -> list[str]:
    """The regular files that a trial made in a folder."""
    if folder.is_symlink() or not folder.is_dir():
        return []
    paths = [path for path, kind in files.walk(str(folder)) if kind == stat.S_IFREG]
    return [path for path in paths if "__pycache__" not in path.split("/")]


def size_bytes(directory: Path) -> int:
    """The bytes of all files below a folder."""
    return sum(path.lstat().st_size for path in directory.rglob("*") if not path.is_dir())
