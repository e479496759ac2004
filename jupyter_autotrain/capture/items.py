"""A captured name, and the order in which the script must bind all of them."""

from __future__ import annotations

import heapq
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from jupyter_autotrain.capture.syntax.history import Binding, BindingKind, Position
from jupyter_autotrain.capture.syntax.names import Names

EARLIEST: Position = (-1, 0, 0)
FIRST: Position = (-2, 0, 0)
"""Before all imports."""
LATEST: Position = (sys.maxsize, 0, 0)
_NOTHING = Names()


@dataclass(slots=True)
class Item:
    """A name that the script binds before the cell's own code.

    Attributes:
        name: The name.
        how: import, source, data, parameter or builtin, as in `core.spec.CapturedName`; "state" for a statement that
            binds no name but changes a library, "setup" for a cell that runs first.
        text: The statements that bind it; "" when something else does.
        origin: Where it comes from, for the table.
        label: The cell its text was copied from, or "".
        first_line: The first line of its text in that cell.
        position: When the notebook bound it; keeps the script in the notebook's order.
        stale: Why it may differ from what the notebook's text gives now.
        size_bytes: Its size as data.
        eager: Names that must be bound before.
        called: Those of `eager` that its text may call, so that all they use must be bound before too.
        deferred: Names that must be bound before the cell's own code.
    """

    name: str
    how: str
    text: str = ""
    origin: str = ""
    label: str = ""
    first_line: int = 1
    position: Position = EARLIEST
    stale: str = ""
    size_bytes: int = 0
    eager: frozenset[str] = frozenset()
    called: frozenset[str] = frozenset()
    deferred: frozenset[str] = frozenset()


def bound_item(
    name: str, how: str, binding: Binding | None, text: str = "", *, uses: Names = _NOTHING, stale: str = ""
) -> Item:
    """Return the item of a name.

    Args:
        name: The name.
        how: How it travels.
        binding: Where the notebook binds it.
        text: The statements that bind it.
        uses: What they need.
        stale: Why it may differ from what the notebook's text gives now.
    """
    item = Item(name, how, text, stale=stale, eager=uses.eager, called=uses.called, deferred=uses.deferred | uses.hints)
    if binding is not None:
        item.origin = binding.label
        item.position = binding.position
    return item


def source_item(name: str, binding: Binding, stale: str, uses: Names) -> Item:
    """Return the item of a definition that travels as its source; see `bound_item`."""
    indented = binding.kind is BindingKind.DEFINITION and binding.node.col_offset > 0
    text = f"if True:\n{binding.source}" if indented else binding.source
    item = bound_item(name, "source", binding, text, uses=uses, stale=stale)
    item.label = binding.label
    item.first_line = binding.first_line - indented
    return item


def in_order(items: Mapping[str, Item]) -> tuple[list[Item], frozenset[str]]:
    """Sort items so that each finds what it needs; among equals imports first, then the notebook's order.

    Returns:
        The items, and names that need each other in a circle (the list is then empty).
    """
    sorter = TopologicalSorter({name: _needs(name, items) for name in items})
    try:
        sorter.prepare()
    except CycleError as error:
        return [], frozenset(error.args[1])
    ready = list[tuple[bool, Position, str]]()
    ordered = list[Item]()
    while sorter.is_active():
        for name in sorter.get_ready():
            heapq.heappush(ready, _key(items[name]))
        done = items[heapq.heappop(ready)[-1]]
        ordered.append(done)
        sorter.done(done.name)
    return ordered, frozenset()


def _key(item: Item) -> tuple[bool, Position, str]:
    return item.how != "import" and item.position != FIRST, item.position, item.name


def _needs(name: str, items: Mapping[str, Item]) -> set[str]:
    item = items[name]
    needs = set(item.eager & items.keys())
    todo = [used for used in item.called if used in items]
    while todo:
        called = todo.pop()
        inner = items[called].eager | items[called].deferred
        fresh = {used for used in inner if used in items and used not in needs}
        needs |= fresh
        todo += sorted(fresh)
    # Calling itself while it is being made would fail in the notebook too.
    return needs - {name}
