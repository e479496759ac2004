"""One captured name, and the order in which the script must bind them all."""

from __future__ import annotations

import heapq
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

from jupyter_autotrain.capture.syntax.history import Binding, BindingKind, Position
from jupyter_autotrain.capture.syntax.names import Names

EARLIEST: Position = (-1, 0, 0)
FIRST: Position = (-2, 0, 0)
"""Before all imports."""
LATEST: Position = (sys.maxsize, 0, 0)


@dataclass(slots=True)
class Item:
    """A name that the script binds before the cell's own code.

    Attributes:
        name: The name.
        how: import, source, data, parameter or builtin, as in `core.spec.CapturedName`; "state" for a statement that
            binds no name but changes a library.
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
    deferred: frozenset[str] = field(default=frozenset())


def import_item(name: str, text: str, binding: Binding | None, uses: Names) -> Item:
    """The item of an import.

    Args:
        name: The name it binds.
        text: The statements.
        binding: Where the notebook has them.
        uses: What they need.
    """
    return Item(
        name, "import", text, binding.label if binding else "",
        position=binding.position if binding else EARLIEST, eager=uses.eager, called=uses.called,
    )  # fmt: skip


def source_item(name: str, binding: Binding, stale: str, uses: Names, set_later: frozenset[str]) -> Item:
    """The item of a definition that travels as its source.

    Args:
        name: The name it binds.
        binding: Where the notebook has it.
        stale: Why it may differ from what the notebook's text gives now.
        uses: What it needs.
        set_later: Items of attributes that are set on it after its statement.
    """
    indented = binding.kind is BindingKind.DEFINITION and binding.node.col_offset > 0
    text = f"if True:\n{binding.source}" if indented else binding.source
    return Item(
        name, "source", text, binding.label, binding.label, binding.first_line - indented, binding.position, stale,
        eager=uses.eager, called=uses.called, deferred=uses.deferred | uses.hints | set_later,
    )  # fmt: skip


def data_item(name: str, binding: Binding | None, stale: str) -> Item:
    """The item of a value that travels as data."""
    if binding is None:
        return Item(name, "data", stale=stale)
    return Item(name, "data", origin=binding.label, stale=stale, position=binding.position)


def in_order(items: Mapping[str, Item]) -> tuple[list[Item], frozenset[str]]:
    """Sort items so that each finds what it needs; among equals imports first, then the notebook's order.

    Returns:
        The items, and the names that need each other in a circle (the list is then incomplete).
    """
    waits = {name: _needs(name, items) for name in items}
    ready = [(_key(items[name]), name) for name, needs in waits.items() if not needs]
    heapq.heapify(ready)
    ordered: list[Item] = []
    while ready:
        _, done = heapq.heappop(ready)
        ordered.append(items[done])
        del waits[done]
        for name, needs in waits.items():
            if done in needs:
                needs.discard(done)
                if not needs:
                    heapq.heappush(ready, (_key(items[name]), name))
    return ordered, frozenset(waits)


def _key(item: Item) -> tuple[bool, Position, str]:
    return item.how != "import" and item.position != FIRST, item.position, item.name


def _needs(name: str, items: Mapping[str, Item]) -> set[str]:
    item = items[name]
    needs = {used for used in item.eager if used in items}
    todo = [used for used in item.called if used in items]
    while todo:
        called = todo.pop()
        inner = items[called].eager | items[called].deferred
        fresh = {used for used in inner if used in items and used not in needs}
        needs |= fresh
        todo += sorted(fresh)
    # Calling itself while it is being made would fail in the notebook too.
    return needs - {name}
