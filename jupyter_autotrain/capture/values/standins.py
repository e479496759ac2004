"""Stand-ins, which pickle as something that the reading process makes."""

from __future__ import annotations

import operator
from collections.abc import Callable
from importlib import resources


class Call:
    """A stand-in that pickles as what a call gives.

    Args:
        function: What is called: a function that every process has, or a stand-in of one.
        arguments: What it is given.
    """

    def __init__(self, function: Callable[..., object], *arguments: object) -> None:
        self._reduced = function, arguments

    def __call__(self, *_: object) -> object:
        """Do nothing: pickle requires a callable where a stand-in is called."""
        raise NotImplementedError

    def __reduce__(self) -> tuple[object, ...]:
        return self._reduced


def own_text(package: str, file: str) -> str:
    """Return the text of a module of ours that travels inside others, without its notes for checkers."""
    lines = resources.files(package).joinpath(file).read_text(encoding="utf-8").rstrip().split("\n")
    return "\n".join(line.partition("  # noqa")[0].partition("  # type")[0] for line in lines)


def _names_of_rebuild() -> Call:
    """Return the names of `rebuild`, made from its text, so that the pickle can be read without this package."""
    code = own_text("jupyter_autotrain.capture.values", "rebuild.py")
    return Call(eval, f"(lambda names: exec({code!r}, names) or names)({{}})")


_REBUILD = _names_of_rebuild()


def rebuilding(name: str) -> Call:
    """Return a stand-in of a function of `rebuild`."""
    return Call(operator.getitem, _REBUILD, name)
