"""The display hooks: how a value of a lower layer is shown by a view of a higher one.

A type that views show derives from `Displayable`. The package's top module registers the views for it; where none is
registered, a value is shown as its `repr`.
"""

from __future__ import annotations

import sys
from functools import singledispatch


class Displayable:
    """A value that a notebook shows by the registered view where it is the value of a cell."""

    __slots__ = ()

    def _ipython_display_(self) -> None:
        show(self)


@singledispatch
def show(value: object) -> object:
    """Show a value where the user is; gives the handle of the view, None where there is none."""
    sys.stdout.write(f"{value!r}\n")
    return None


@singledispatch
def mime_bundle(value: object) -> dict[str, str]:
    """The static forms of a value, by MIME type."""
    return {"text/plain": repr(value)}
