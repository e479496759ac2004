"""Values that travel as data: pickled one by one as they are found, then again together where they share objects."""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import CodeType

from jupyter_autotrain.capture.definitions import sources
from jupyter_autotrain.capture.differences import Difference, DifferenceKind
from jupyter_autotrain.capture.internal_faults import refused_by_name
from jupyter_autotrain.capture.items import Item
from jupyter_autotrain.capture.values import unpicklable
from jupyter_autotrain.capture.values.attributes import owners
from jupyter_autotrain.capture.values.data import Pickled, dump, embed, file_name, sharing
from jupyter_autotrain.capture.values.memory import ArrayMemory
from jupyter_autotrain.capture.values.pickler import PickleContext
from jupyter_autotrain.capture.values.stream import ByteBudget, LimitError, PickleStream
from jupyter_autotrain.capture.values.unpicklable import UnpicklableError
from jupyter_autotrain.core.sizes import format_bytes

_NOTHING = Pickled()


class PickledValues:
    """The pickles of the captured names that travel as data.

    Args:
        namespace: The notebook's globals.
        live: The value of each captured name; attributes of definitions, such as `Net.seen`, among them.
        items: Every captured name so far; those that are data get their size and what they refer to.
        in_script: A method that gives the name under which the script defines this very function or class, or None.
        budget: How much data may travel.
    """

    def __init__(
        self,
        namespace: Mapping[str, object],
        live: Mapping[str, object],
        items: Mapping[str, Item],
        in_script: Callable[[object], str | None],
        budget: ByteBudget,
    ) -> None:
        self._live = live
        self._items = items
        self._budget = budget
        # No cycle: what a capture refers to must not live on here, where a table with two owners is copied on writing.
        self._context = PickleContext(namespace, _weakly(in_script))
        self.pickles: dict[str, Pickled] = {}
        self.refused: dict[str, str] = {}
        self.too_big: dict[str, int] = {}
        self.uncounted: set[str] = set()
        self.files: dict[str, bytes] = {}

    @property
    def modules(self) -> frozenset[str]:
        """Modules that classes and functions inside the pickles are imported from."""
        return frozenset[str]().union(*(pickled.modules for pickled in self.pickles.values()))

    @property
    def codes(self) -> list[CodeType]:
        """The code of the functions inside the pickles, in the order of their text."""
        found = {code for pickled in self.pickles.values() for code in pickled.codes}
        return sorted(found, key=lambda code: (code.co_filename, code.co_firstlineno, code.co_name))

    def waiting(self) -> list[str]:
        """Names that travel as data and are not pickled yet."""
        return [name for name, item in self._items.items() if item.how == "data" and name not in self.pickles]

    def add(self, names: Sequence[str]) -> None:
        """Pickle these names; what cannot travel is in `refused` and `too_big` afterwards."""
        for name in names:
            pickled = self._pickled(name)
            self.pickles[name] = pickled
            item = self._items[name]
            item.size_bytes = len(pickled.content)
            self._budget.kept_bytes += item.size_bytes
            item.eager = pickled.refers | owners([name])
            item.deferred = pickled.uses
            others = pickled.refers - owners([name])
            called = (n for n in others if sources.runs_when_unpickled(self._live.get(n)))
            item.called = frozenset(called)

    def forget_refused(self, name: str, most_bytes: int) -> str:
        """Forget a value that cannot travel or is bigger than `most_bytes`, and give why; "" for any other."""
        size_bytes = max(self.too_big.get(name, 0), len(self.pickles[name].content))
        refused = {path: why for path, why in self.refused.items() if re.split(r"[.[]", path)[0] == name}
        if size_bytes <= most_bytes and not refused:
            return ""
        self.refused = {path: why for path, why in self.refused.items() if path not in refused}
        self._budget.kept_bytes -= len(self.pickles.pop(name).content)
        if name in self.too_big:
            self.too_big.clear()
        return next(iter(refused.values()), f"{format_bytes(size_bytes)} of data")

    def _pickled(self, name: str) -> Pickled:
        value = self._live.get(name)
        if name in self.refused:
            return _NOTHING
        if self.too_big:
            self._count(name)
            return _NOTHING
        with refused_by_name(name):
            return self._dump_or_refuse(name, value)

    def _dump_or_refuse(self, name: str, value: object) -> Pickled:
        try:
            return self._dump(value)
        except UnpicklableError as error:
            found = dict(unpicklable.find(name, value))
            self.refused |= found or {name: f"a {type(value).__name__} that cannot be pickled: {error}"}
        except LimitError as error:
            self.too_big = {done: self._items[done].size_bytes for done in self.pickles} | {name: error.size_bytes}
            self._count(name, error.size_bytes)
        return _NOTHING

    def _dump(self, value: object) -> Pickled:
        return dump(value, self._context, PickleStream(self._budget))

    def _count(self, name: str, known_bytes: int = 0) -> None:
        """Find the size of what is too big together with the others; up to the limit, where counting ends too."""
        if known_bytes > self._budget.limit_bytes:
            self.uncounted.add(name)
            return
        stream = PickleStream(self._budget, counts_only=True)
        try:
            dump(self._live.get(name), self._context, stream)
            self.too_big[name] = stream.size_bytes
        except UnpicklableError as error:
            self.refused[name] = str(error)
        except LimitError as error:
            self.too_big[name] = error.size_bytes
            self.uncounted.add(name)

    def share(self) -> None:
        """Write the pickles; names whose values share objects or memory go into one, to share them in the trial."""
        taken: set[str] = set()
        for names in self._groups():
            first = self._items[names[0]]
            file = file_name(names, taken)
            together = self.pickles[names[0]]
            if len(names) > 1 or together.again:
                with refused_by_name(", ".join(names)):
                    together = self._pickle_jointly(names)
                if self.too_big:
                    return
                first.eager = together.refers | owners(names)
                first.deferred = together.uses
                first.called = frozenset().union(*(self._items[name].called for name in names))
            self.files[file] = together.content
            taken.add(file.lower())
            first.text = f'{", ".join(names)} = __autotrain_data__("{file}")'
            for other in names[1:]:
                self._items[other].eager = frozenset({first.name})

    def _groups(self) -> list[tuple[str, ...]]:
        memory = self._context.memory
        all_pickled = list(self.pickles.values())
        if memory.has_views:
            spans = [one for pickled in all_pickled for one in pickled.spans]
            memory.join(spans, [one for pickled in all_pickled for one in pickled.buffers()])
        if len(self.pickles) < 2:
            return [(name,) for name in self.pickles]
        shared = {name: _shared_memory(self.pickles[name], memory) for name in sorted(self.pickles)}
        return sharing({name: [*self.pickles[name].parts(), *shared[name]] for name in shared})

    def differences(self) -> Iterator[Difference]:
        """What is only a copy in a trial, or not there."""
        for name, pickled in sorted(self.pickles.items()):
            origin = self._items[name].origin
            for text in dict.fromkeys(pickled.copies):
                yield Difference(DifferenceKind.COPIED, f"{name} {text}", origin)
            for text in sorted(pickled.left_out):
                yield Difference(DifferenceKind.NOT_CARRIED, f"{text} (in {name})", origin)

    def _pickle_jointly(self, names: Sequence[str]) -> Pickled:
        """One pickle of several names, in place of those of each; now that the memory of all arrays is known."""
        self._budget.kept_bytes -= sum(self._items[name].size_bytes for name in names)
        value = embed(names, self._live)
        stream = PickleStream(self._budget)
        try:
            together = dump(value, self._context, stream, is_joined=True)
        except LimitError as error:
            self.too_big = {" and ".join(names): error.size_bytes}
            return _NOTHING
        self._budget.kept_bytes += len(together.content)
        return together


def _shared_memory(pickled: Pickled, memory: ArrayMemory) -> set[int]:
    """What stands for the memory in which arrays lie that others share; no object has such an identity."""
    if not memory.has_views:
        return set()
    regions = (memory.region(one.low, one.high) for one in (*pickled.spans, *pickled.buffers()))
    return {-region.low for region in regions if region is not None}


def _weakly(method: Callable[[object], str | None]) -> Callable[[object], str | None]:
    """The same method, without holding its object."""
    held = weakref.WeakMethod(method)

    def call(value: object) -> str | None:
        live = held()
        return None if live is None else live(value)

    return call
