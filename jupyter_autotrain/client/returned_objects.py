"""Objects that trials have returned (`returns:`): pickles in the trial directories."""

from __future__ import annotations

import pickle
import unicodedata
from pathlib import Path

from jupyter_autotrain.core import files, wire
from jupyter_autotrain.core.text_format import cut
from jupyter_autotrain.errors import AutotrainError


def unpickle(directory: Path, name: str) -> object:
    """An object that the trial returned. Reading a pickle runs code that its writer chose.

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
    names = _returned(outputs)
    return AutotrainError(
        f"The trial has not returned {cut(name, 60)!r}{why}.",
        f"It returned: {', '.join(names)}." if names else "It has returned nothing so far.",
        f"Name it in the header: 'returns: [{cut(name, 60)}]', and see how the trial ended: %autotrain why",
    )
