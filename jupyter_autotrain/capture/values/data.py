"""The values that travel as data: all in one pickle, written name by name, so that what they share they share there."""

from __future__ import annotations

import pickle
import weakref
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import CodeType

from jupyter_autotrain.capture import looking
from jupyter_autotrain.capture.definitions import sources
from jupyter_autotrain.capture.differences import Difference, DifferenceKind, not_carried
from jupyter_autotrain.capture.items import Item
from jupyter_autotrain.capture.looking import refused_by_name
from jupyter_autotrain.capture.values import unpicklable
from jupyter_autotrain.capture.values.arrays import overlapping
from jupyter_autotrain.capture.values.pickler import Pickled, ValuePickler
from jupyter_autotrain.capture.values.standins import Call
from jupyter_autotrain.capture.values.stream import ByteBudget, LimitError, PickleStream
from jupyter_autotrain.capture.values.unpicklable import UnpicklableError
from jupyter_autotrain.errors import AutotrainError

FILE = "values"
"""The name of the pickle."""


_WRITTEN_OUT = (bool, int, float, type(None))


_READER = "__import__('pickle').Unpickler(__import__('io').BytesIO(content))"
_READ_ALL = Call(eval, f"lambda count, content: (lambda one: [one.load() for _ in range(count)])({_READER})")
"""A function that reads all values of a pickle: their number, the bytes."""


class PickledValues:
    """The pickle of the captured names that travel as data.

    Args:
        namespace: The notebook's globals.
        items: Every captured name so far; those that are data get their size and what they refer to.
        in_script: A method that gives the name under which the script defines this very function or class, or None.
        budget: How much data may travel.
    """

    def __init__(
        self,
        namespace: Mapping[str, object],
        items: Mapping[str, Item],
        in_script: Callable[[object], str | None],
        budget: ByteBudget,
    ) -> None:
        self._namespace = namespace
        self._items = items
        self._budget = budget
        # No cycle: what a capture refers to must not live on here, where a table with two owners is copied on writing.
        self._in_script = _weakly(in_script)
        self._is_torn = False
        self.pickles: dict[str, Pickled] = {}
        self.refused: dict[str, str] = {}
        self.too_big: dict[str, int] = {}
        self.uncounted: set[str] = set()
        self.files: dict[str, bytes] = {}
        self._begin()

    def _begin(self) -> None:
        self._stream = PickleStream(self._budget)
        self._pickler = ValuePickler(self._stream, self._namespace, self._in_script)

    @property
    def modules(self) -> frozenset[str]:
        """Modules that classes and functions inside the pickle are imported from."""
        return frozenset[str]().union(*(pickled.modules for pickled in self.pickles.values()))

    @property
    def codes(self) -> list[CodeType]:
        """The code of the functions inside the pickle, in the order of their text."""
        found = {code for pickled in self.pickles.values() for code in pickled.codes}
        return sorted(found, key=lambda code: (code.co_filename, code.co_firstlineno, code.co_name))

    def waiting(self) -> list[str]:
        """Return the names that travel as data and are not pickled yet."""
        return [name for name, item in self._items.items() if item.how == "data" and name not in self.pickles]

    def add(self, names: Sequence[str]) -> None:
        """Pickle these names; those that cannot travel are in `refused` and `too_big` afterwards."""
        for name in names:
            item = self._items[name]
            value = self._namespace.get(name)
            if any(type(value) is kind for kind in _WRITTEN_OUT) and repr(value) not in {"inf", "-inf", "nan"}:
                item.text = f"{name} = {value!r}"  # what needs it, such as a default, need not wait for the pickle
            self.pickles[name] = Pickled() if item.text else self._pickled(name)
            item.size_bytes = sum(map(len, self.pickles[name].chunks)) or len(item.text)
            item.deferred = frozenset(self.pickles[name].uses)

    def _pickled(self, name: str) -> Pickled:
        if name in self.refused:
            return Pickled()
        if self.too_big:
            self._count(name)
            return Pickled()
        with refused_by_name(name):
            return self._dump_or_refuse(name)

    def _dump_or_refuse(self, name: str) -> Pickled:
        try:
            return self._dump(self._namespace.get(name))
        except UnpicklableError as error:
            found = dict(unpicklable.find(name, self._namespace.get(name)))
            kind = type(self._namespace.get(name)).__name__
            self.refused |= found or {name: f"a {kind} that cannot be pickled: {error}"}
        except LimitError as error:
            done = {other: self._items[other].size_bytes for other in self.pickles if other != name}
            size_bytes = error.size_bytes - sum(done.values())
            self.too_big = done | {name: size_bytes}
            self._count(name, size_bytes)
        self._is_torn = True  # a half of it is in the pickle
        self._begin()
        return Pickled()

    def _dump(self, value: object) -> Pickled:
        start = self._stream.count
        _dump(value, self._pickler)
        pickled = self._pickler.take_notes()
        pickled.chunks = self._stream.chunks_since(start)
        return pickled

    def _count(self, name: str, known_bytes: int = 0) -> None:
        """Find the size of what is too big together with the others; up to the limit, where counting ends too."""
        if known_bytes > self._budget.limit_bytes:
            self.uncounted.add(name)
            return
        stream = PickleStream(self._budget, counts_only=True)
        try:
            _dump(self._namespace.get(name), ValuePickler(stream, self._namespace, self._in_script))
            self.too_big[name] = stream.size_bytes
        except UnpicklableError as error:
            self.refused[name] = str(error)
        except LimitError as error:
            self.too_big[name] = error.size_bytes
            self.uncounted.add(name)

    def write(self) -> None:
        """Write the pickle, and let the script bind all its names at once."""
        names = [name for name in self.pickles if not self._items[name].text]
        if self._is_torn:
            self._begin()
            self.pickles |= {name: self._dump(self._namespace.get(name)) for name in names}
        if not names:
            return
        pickled = [self.pickles[name] for name in names]
        content = b"".join(one.content for one in pickled)
        self.files[FILE] = content if len(names) == 1 else pickle.dumps(Call(_READ_ALL, len(names), content))
        first = self._items[names[0]]
        first.text = f'{", ".join(names)} = __autotrain_data__("{FILE}")'
        first.eager = frozenset[str]().union(*(one.refers for one in pickled))
        first.deferred = frozenset[str]().union(*(one.uses for one in pickled))
        first.called = frozenset(filter(self._runs_when_read, first.eager))
        for name in names[1:]:
            self._items[name].eager = frozenset({first.name})

    def _runs_when_read(self, name: str) -> bool:
        return sources.runs_when_unpickled(self._namespace.get(name))

    def differences(self) -> Iterator[Difference]:
        """Yield the differences of values that are only a copy in a trial, or not there."""
        kept = list(self._pickler.kept())
        yield from self._copies()
        yield from self._by_identity(kept)
        yield from self._sharing(kept)

    def _copies(self) -> Iterator[Difference]:
        for name, pickled in sorted(self.pickles.items()):
            for text in dict.fromkeys(pickled.copies):
                yield Difference(DifferenceKind.COPIED, f"{name} {text}", self._items[name].origin)
            for text in sorted(pickled.left_out):
                yield self._told(f"{text} (in {name})", name)

    def _by_identity(self, kept: Sequence[object]) -> Iterator[Difference]:
        known = set(map(id, kept))
        for value in kept:
            key = next(iter(value), None) if type(value) is dict else None
            if type(key) is int and key in known:
                name = self._holder(value)
                yield self._told(f"{name} has id() of objects as keys, which differ in each process", name)

    def _sharing(self, kept: Sequence[object]) -> Iterator[Difference]:
        arrays = {name: [*pickled.arrays] for name, pickled in sorted(self.pickles.items())}
        for value in kept:
            if isinstance(value, bytearray | array):
                arrays.setdefault(self._holder(value), []).append(value)
        for one, other in overlapping(arrays):
            if not (_is_table(self._namespace.get(one)) and _is_table(self._namespace.get(other))):
                shared = f"arrays in {one} share: each is" if one == other else f"{one} and {other} share: each is"
                yield self._told(f"memory that {shared} a copy of its own", other)

    def _told(self, text: str, name: str) -> Difference:
        advice = "" if text.endswith(")") else ": make it in the cell"
        return not_carried(f"{text}{advice}", self._items[name].origin)

    def _holder(self, value: object) -> str:
        """Return the name whose value holds an object."""
        for name in sorted(self.pickles, key=lambda name: self._namespace.get(name) is not value):
            if any(one is value for one in unpicklable.inside(self._namespace.get(name))):
                return name
        return next(iter(self.pickles))


def _dump(value: object, pickler: ValuePickler) -> None:
    """Pickle a value.

    Raises:
        UnpicklableError: Something in it cannot be pickled.
        LimitError: It has more bytes than may travel.
    """
    try:
        pickler.dump(value)
    except (LimitError, AutotrainError):
        raise
    except RecursionError:
        raise UnpicklableError("it is nested too deeply") from None
    except Exception as error:  # noqa: BLE001 - any class may raise anything while it is pickled
        raise UnpicklableError(looking.words_of(error)) from None


def _is_table(value: object) -> bool:
    """Return whether pandas copies what it shares before it is written to, so that a copy is as good."""
    return looking.module_of(type(value)).startswith("pandas.")


def _weakly(method: Callable[[object], str | None]) -> Callable[[object], str | None]:
    """Return the same method, without holding its object."""
    held = weakref.WeakMethod(method)

    def call(value: object) -> str | None:
        live = held()
        return None if live is None else live(value)

    return call
