"""Values that travel as data: pickled one by one as they are found, then again together where they share objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from jupyter_autotrain.capture import definitions, refuse, sizes
from jupyter_autotrain.capture.data import Pickled, UnpicklableError, dump, embed, file_name, sharing
from jupyter_autotrain.capture.items import Item

_NOTHING = Pickled(b"", frozenset(), frozenset(), frozenset(), {})


class Values:
    """The pickles of the captured names that travel as data.

    Args:
        namespace: The notebook's globals.
        items: Every captured name so far; those that are data get their size and what they refer to.
        in_script: Gives the name under which the script defines this very function or class, or None.
        limit_bytes: How much data may travel.
    """

    def __init__(
        self,
        namespace: Mapping[str, object],
        items: Mapping[str, Item],
        in_script: Callable[[object], str | None],
        limit_bytes: int,
    ) -> None:
        self._namespace, self._items, self._in_script, self._limit_bytes = namespace, items, in_script, limit_bytes
        self.pickles: dict[str, Pickled] = {}
        self.refused: dict[str, str] = {}
        self.too_big: dict[str, int] = {}
        self.files: dict[str, bytes] = {}

    def waiting(self) -> list[str]:
        """Names that travel as data and are not pickled yet."""
        return [name for name, item in self._items.items() if item.how == "data" and name not in self.pickles]

    def add(self, names: Sequence[str]) -> None:
        """Pickle these names; what cannot travel is in `refused` and `too_big` afterwards."""
        fresh = [name for name in names if name not in self.refused]
        measured = {name: sizes.measure(self._namespace[name]) for name in fresh}
        known = sum(item.size_bytes for item in self._items.values())
        if sum(measured.values()) + known > self._limit_bytes:
            self.too_big = {**{n: self._items[n].size_bytes for n in self.pickles}, **measured}
        for name in names:
            pickled = self._pickled(name)
            self.pickles[name], item = pickled, self._items[name]
            item.size_bytes = len(pickled.content)
            item.eager, item.deferred = pickled.refers, pickled.uses
            called = (n for n in item.eager if definitions.runs_when_unpickled(self._namespace.get(n)))
            item.called = frozenset(called)

    def _pickled(self, name: str) -> Pickled:
        value = self._namespace.get(name)
        skip = name in self.refused or bool(self.too_big)
        self.refused.update({} if name in self.refused else dict(refuse.find(name, value)))
        if skip or any(path.startswith(name) for path in self.refused):
            return _NOTHING
        try:
            return dump(value, self._namespace, self._in_script)
        except UnpicklableError as error:
            self.refused[name] = f"a {type(value).__name__} that cannot be pickled: {error}"
            return _NOTHING

    def share(self) -> None:
        """Write the pickles; names whose values share objects go into one, so that they share them in the trial."""
        for names in sharing({name: pickled.parts for name, pickled in sorted(self.pickles.items())}):
            first, file = self._items[names[0]], file_name(names)
            together = self.pickles[names[0]]
            if len(names) > 1:
                together = dump(embed(names, self._namespace), self._namespace, self._in_script)
                first.eager, first.deferred = together.refers, together.uses
                first.called = frozenset().union(*(self._items[name].called for name in names))
            self.files[file] = together.content
            first.text = f'{", ".join(names)} = __autotrain_data__("{file}")'
            for other in names[1:]:
                self._items[other].eager = frozenset({first.name})
