"""Names that only texts have: they travel where they can, and are reported where they cannot or are not known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from jupyter_autotrain.capture.differences import Difference, DifferenceKind

if TYPE_CHECKING:
    from jupyter_autotrain.capture.syntax.names import Names


class TextNames:
    """The names that nothing but texts have so far, such as that of `df.query("a > @limit")`."""

    def __init__(self) -> None:
        self.only: frozenset[str] = frozenset()
        self._read: frozenset[str] = frozenset()

    def use(self, names: Names, origin: str) -> list[Difference]:
        """Take in what some code reads; gives what is not known of it."""
        plain = names.needed - names.texts
        self._read |= plain
        self.only = (self.only | names.texts) - self._read
        text = "names that only {} reads, as they are not known before it runs: write them in the cell too"
        return [Difference(DifferenceKind.NOT_CARRIED, text.format(call), origin) for call in sorted(names.unknown)]

    def drop(self, refused: dict[str, str], origin: Callable[[str], str]) -> Iterator[tuple[str, Difference]]:
        """Take names that cannot travel out of `refused`: in a text they may well be a column, or a parameter.

        Args:
            refused: How to reach what cannot travel -> why.
            origin: Gives the cell that bound a name.
        """
        for path in sorted(refused):
            name = path.partition("[")[0].partition(".")[0]
            if name in self.only:
                text = f"{name}, which a text names: {refused.pop(path)}"
                yield name, Difference(DifferenceKind.NOT_CARRIED, text, origin(name))
