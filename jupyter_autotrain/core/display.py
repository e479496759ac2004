"""The display hooks: how a value of a lower layer is shown by a view of a higher one.

A type that views show derives from `Displayable`. The package's top module registers the views for it; where none is
registered, a value is shown as its `repr`. Every trial imports this module, so it imports next to nothing:
`functools.singledispatch` would bring in `typing`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping


class Displayable:
    """A value that a notebook shows by the registered view where it is the value of a cell."""

    __slots__ = ()

    def _ipython_display_(self) -> None:
        show(self)


class Hooks:
    """The functions that show a `Displayable`: those of a higher layer, once it has set them.

    Attributes:
        show: Shows a value where the user is; gives the handle of the view, None where there is none.
        mime_bundle: Gives the static forms of a value, by MIME type.
    """

    def __init__(self) -> None:
        self.show: Callable[[object], object] = _print
        self.mime_bundle: Callable[[object], Mapping[str, object]] = _text


def _print(value: object) -> None:
    sys.stdout.write(f"{value!r}\n")


def _text(value: object) -> dict[str, str]:
    return {"text/plain": repr(value)}


hooks = Hooks()


def show(value: object) -> object:
    """Show a value where the user is; gives the handle of the view, None where there is none."""
    return hooks.show(value)


def mime_bundle(value: object) -> Mapping[str, object]:
    """The static forms of a value, by MIME type."""
    return hooks.mime_bundle(value)
