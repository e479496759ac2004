"""The files of an experiment in the home: outputs and sizes."""

from __future__ import annotations

import pickle
import stat
from pathlib import Path

from jupyter_autotrain.core import files, wire
from jupyter_autotrain.errors import AutotrainError


def unpickle(directory: Path, name: str) -> object:
    """An object that the trial returned (`returns:`).

    Raises:
        AutotrainError: It is not there, or cannot be rebuilt here.
    """
    try:
        with files.open_regular(directory, f"{wire.OUTPUTS}/{name}.pkl") as file:
            return pickle.load(file)  # noqa: S301 - written by the user's own trial, in the user's private folder
    except OSError as error:
        raise _not_returned(directory, name, error) from error
    except Exception as error:
        raise AutotrainError(
            f"{name!r} cannot be rebuilt here: {type(error).__name__}: {error}.",
            "The classes it is made of must be importable or defined here.",
            "Import or define them in this notebook, then load again.",
        ) from error


def _not_returned(directory: Path, name: str, error: OSError) -> AutotrainError:
    there = sorted(file.stem for file in (directory / wire.OUTPUTS).glob("*.pkl"))
    why = "" if files.is_absent(error) else f": {error.strerror}"
    return AutotrainError(
        f"The trial has not returned {name!r}{why}.",
        f"It returned: {', '.join(there)}." if there else "It has returned nothing so far.",
        f"Name it in the header: 'returns: [{name}]', and look with '%autotrain why' how the trial ended.",
    )


def copy_outputs(directory: Path, target: Path) -> list[str]:
    """Copy what a trial returned, and the files it wrote where it ran, into a folder; gives their names in it.

    Raises:
        AutotrainError: The folder cannot be written.
    """
    found = _made(directory, wire.WORK) | _made(directory, wire.OUTPUTS)
    try:
        for name, folder in found.items():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            files.copy_file(directory, f"{folder}/{name}", str(target / name))
    except OSError as error:
        raise AutotrainError(
            f"{error.filename or target} cannot be copied: {error.strerror}.",
            "A folder that can be written.",
            "Choose another folder.",
        ) from error
    return sorted(found)


def _made(directory: Path, folder: str) -> dict[str, str]:
    """The regular files that a trial made in a folder, and the folder: those that came with it are links."""
    if (directory / folder).is_symlink() or not (directory / folder).is_dir():
        return {}
    found = [path for path, kind in files.walk(str(directory / folder)) if kind == stat.S_IFREG]
    return {path: folder for path in found if "__pycache__" not in path.split("/")}


def size_bytes(directory: Path) -> int:
    """The bytes of all files below a folder."""
    return sum(path.lstat().st_size for path in directory.rglob("*") if not path.is_dir())
