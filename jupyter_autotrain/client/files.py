"""The files of an experiment in the home: outputs and sizes."""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path

from jupyter_autotrain.core import wire
from jupyter_autotrain.errors import AutotrainError


def unpickle(directory: Path, name: str) -> object:
    """An object that the trial returned (`returns:`).

    Raises:
        AutotrainError: It is not there, or cannot be rebuilt here.
    """
    path = directory / wire.OUTPUTS / f"{name}.pkl"
    if not path.is_file():
        there = sorted(file.stem for file in path.parent.glob("*.pkl"))
        raise AutotrainError(
            f"The trial has not returned {name!r}.",
            f"It returned: {', '.join(there)}." if there else "It has returned nothing so far.",
            f"Name it in the header: 'returns: [{name}]', and look with '%autotrain why' how the trial ended.",
        )
    try:
        with path.open("rb") as file:
            return pickle.load(file)  # noqa: S301 - written by the user's own trial, in the user's private folder
    except Exception as error:
        raise AutotrainError(
            f"{name!r} cannot be rebuilt here: {type(error).__name__}: {error}.",
            "The classes it is made of must be importable or defined here.",
            "Import or define them in this notebook, then load again.",
        ) from error


def copy_outputs(directory: Path, target: Path) -> list[str]:
    """Copy what a trial returned, and the files it wrote where it ran, into a folder; gives their names in it.

    Raises:
        AutotrainError: The folder cannot be written.
    """
    found = _made(directory / wire.WORK) | _made(directory / wire.OUTPUTS)
    try:
        for name, path in found.items():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target / name)
    except OSError as error:
        raise AutotrainError(
            f"{target} cannot be written: {error.strerror}.", "A folder that can be written.", "Choose another folder."
        ) from error
    return sorted(found)


def _made(folder: Path) -> dict[str, Path]:
    """The files that a trial made in a folder: those that came with it are links."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {str(path.relative_to(folder)): path for path in files if "__pycache__" not in path.parts}


def size_bytes(directory: Path) -> int:
    """The bytes of all files below a folder."""
    return sum(path.lstat().st_size for path in directory.rglob("*") if not path.is_dir())
