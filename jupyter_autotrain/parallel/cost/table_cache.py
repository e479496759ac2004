"""Caches of a search: values that are computed once and looked up by a plain key.

A search run makes a `TableCache` for its cost models and its lower bounds, and one for each candidate, which is dropped
with it; keys in that one leave out what the candidate fixes. A cost model has its own `ModelTables`, an entry of the
cache of the run. No frozen value fills a dict of its own. Layouts, redistributions, elimination orders and strategies
depend only on their arguments, and are memoised by `functools` in their own modules.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TypeVar, cast

from jupyter_autotrain.parallel.arrays import Floats, Ints
from jupyter_autotrain.parallel.cost.layout import Layouts
from jupyter_autotrain.parallel.cost.ops import OpTable, SplitKey
from jupyter_autotrain.parallel.cost.redistribution import EdgeTable, LayoutKey

RECENT = 24  # entries of one kind; the tables of one mesh take megabytes

Made = TypeVar("Made")


class TableCache:
    """Entries by kind and key; a key names everything that its entry depends on and varies while it lives."""

    def __init__(self) -> None:
        self._made: dict[type, dict[Hashable, object]] = {}

    def get(self, kind: type[Made], key: Hashable, make: Callable[[], Made]) -> Made:
        """Return the entry of a key, made where there is none yet."""
        entries = self._entries(kind)
        if key not in entries:
            entries[key] = make()
        return entries[key]

    def recent(self, kind: type[Made], key: Hashable, make: Callable[[], Made]) -> Made:
        """Return the same for large entries: of this kind, those used last are kept."""
        entries = self._entries(kind)
        entry = entries.pop(key) if key in entries else make()
        entries[key] = entry
        while len(entries) > RECENT:
            del entries[next(iter(entries))]
        return entry

    def count(self, kind: type) -> int:
        """Entries of a kind."""
        return len(self._made.get(kind, {}))

    def _entries(self, kind: type[Made]) -> dict[Hashable, Made]:
        return cast("dict[Hashable, Made]", self._made.setdefault(kind, {}))


@dataclass(eq=False, slots=True)
class ModelTables:
    """The tables of one cost model; they are an entry of the cache with their model.

    Attributes:
        strategies: By the op in the first block of its run.
        representatives: By form and strategies, the first op seen that costs the same.
        ops: By op.
        edges: By tensor and the op that reads it.
        edges_into: By op.
        representative_edges: By what both ends cost the same as.
        layouts: By op, loops of the operand, and whether it is produced.
        shard_counts: Numbers of shard_counts, by op and loops of the operand.
        redistribution_s: Seconds of every change of layout, by the bytes of the tensor.
    """

    strategies: dict[int, Ints] = field(default_factory=dict)
    representatives: dict[tuple[int, bytes], int] = field(default_factory=dict)
    ops: dict[int, OpTable] = field(default_factory=dict)
    edges: dict[tuple[int, int], EdgeTable] = field(default_factory=dict)
    edges_into: dict[int, list[EdgeTable]] = field(default_factory=dict)
    representative_edges: dict[Hashable, EdgeTable] = field(default_factory=dict)
    layouts: dict[LayoutKey, Layouts] = field(default_factory=dict)
    shard_counts: dict[SplitKey, Ints] = field(default_factory=dict)
    redistribution_s: dict[float, Floats] = field(default_factory=dict)

    def clear(self) -> None:
        """Drop the tables of ops and edges; they are made again on use."""
        edges = (self.edges, self.edges_into, self.representative_edges)
        for tables in (self.ops, *edges, self.layouts, self.shard_counts):
            tables.clear()
