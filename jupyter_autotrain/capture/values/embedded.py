"""The functions of `rebuild`, pickled as their own source: the pickle can be read without this package."""

from __future__ import annotations

import operator
from functools import cache
from importlib import resources


@cache
def _expression() -> str:
    """An expression that gives the names of `rebuild`."""
    text = resources.files("jupyter_autotrain.capture.values").joinpath("rebuild.py").read_text(encoding="utf-8")
    code = "\n".join(line.partition("  # noqa")[0].partition("  # type")[0] for line in text.rstrip().split("\n"))
    return f"(lambda names: exec({code!r}, names) or names)({{}})"


class _RebuildNames:
    """Pickles as the names of `rebuild`, made from its text."""

    def __reduce__(self) -> tuple[object, ...]:
        return eval, (_expression(),)


_NAMES = _RebuildNames()


class Embedded:
    """Pickles as a function of `rebuild`.

    Args:
        name: Its name.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, *_: object) -> object:
        """Do nothing: pickle requires a callable."""
        raise NotImplementedError

    def __reduce__(self) -> tuple[object, ...]:
        return operator.getitem, (_NAMES, self._name)


EMBEDDED = (Embedded, _RebuildNames)
