"""The arrays of one pickle: the memory each lies in."""

from __future__ import annotations

from collections.abc import Callable

from jupyter_autotrain.capture.values.memory import ArrayMemory, Region, Span

ReducedValue = tuple[object, ...] | None
"""How to make a value again, as `__reduce__` gives it; None where pickle knows itself."""


class LaterError(Exception):
    """An array can only be pickled once the memory of all arrays is known."""


class ArrayLayout:
    """Finds for each array the memory it travels in.

    The memory of all names is known only after each was pickled once. Until then an array that lies in memory seen
    before is left out, and what holds it is pickled `again`, together with what shares it.

    Args:
        memory: The memory of all arrays of the capture.
        is_joined: Whether all of them are known.
    """

    def __init__(self, memory: ArrayMemory, *, is_joined: bool) -> None:
        self._memory = memory
        self._is_joined = is_joined
        self.spans: list[Span] = []
        self.roots: dict[int, object] = {}
        self.again = False
        self.copies: list[str] = []
        self._apart: dict[int, object] = {}
        self._made: dict[object, object] = {}
        self._kept: list[Region] = []

    def shared(self, one: Span, *, owns: bool) -> Region | None:
        """The memory in which an array travels together with others; None when it shares none.

        Args:
            one: Where the array lies.
            owns: Whether it owns its memory.

        Raises:
            LaterError: What else lies there is not known yet.
        """
        if self._is_joined:
            return self._memory.region(one.low, one.high)
        self.spans.append(one)
        if self._memory.note(one.low, one.high, owns=owns):
            self.again = True
            raise LaterError
        return None

    def alone(self, one: Span) -> Region:
        """The memory of an array that shares it with nothing; kept until it is written."""
        self._kept.append(Region([one]))
        return self._kept[-1]

    def shares_objects(self, root: object, view: object) -> bool:
        """Whether an array of objects travels as a view of `root`, which another one is or is a view of, too."""
        views = self._memory.views_of(root)
        views[id(view)] = view
        self.roots[id(root)] = root
        self.again |= not self._is_joined and len(views) > 1
        return self._is_joined and len(views) > 1

    def keep_apart(self, value: object) -> None:
        """Pickle an array separately, whatever else is in its memory."""
        self._apart[id(value)] = value

    def is_apart(self, value: object) -> bool:
        """Whether an array is pickled separately."""
        return id(value) in self._apart

    def once(self, key: object, make: Callable[[], object]) -> object:
        """What `make` gave for this key the first time, so that it travels once."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]
