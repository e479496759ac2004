"""Cells that run in a trial before everything else, as `setup: [3, 5]` of the header asks."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from jupyter_autotrain.capture.items import Item
from jupyter_autotrain.capture.script import CapturedCode, without_futures
from jupyter_autotrain.capture.syntax.cells import python_tree
from jupyter_autotrain.capture.syntax.history import BindingKind, History
from jupyter_autotrain.capture.syntax.names import analyse
from jupyter_autotrain.errors import CaptureError


def read(history: History, numbers: Collection[int]) -> Iterator[tuple[Item, set[str]]]:
    """Yield each cell that runs first, in the order in which they ran, and the definitions that are still those of it.

    Args:
        history: The executed cells.
        numbers: Their execution numbers.

    Raises:
        CaptureError: No cell of such a number has run, or it holds no Python.
    """
    places = {cell.number: index for index, cell in enumerate(history.cells)}
    for number in sorted(numbers):
        index = places.get(number)
        found = python_tree(history.cells[index].source) if index is not None else None
        if index is None or found is None:
            raise _no_such_cell(number, history)
        yield _setup_cell(history, index, CapturedCode(found[1], found[0]))


def _setup_cell(history: History, index: int, code: CapturedCode) -> tuple[Item, set[str]]:
    cell = history.cells[index]
    lazy = "annotations" in history.futures
    names = analyse(code.tree.body, lazy_annotations=lazy, values=history.values)
    text = without_futures(code).rstrip("\n")
    item = Item(
        f"setup {cell.label}", "setup", text, cell.label, cell.label, position=(index, 0, 0), eager=names.eager,
        called=names.called, deferred=names.deferred,
    )  # fmt: skip
    last = {name: history.last(name) for name in names.binds}
    own = {name for name, one in last.items() if one and one.position[0] == index and one.kind is not BindingKind.OTHER}
    return item, own


def _no_such_cell(number: int, history: History) -> CaptureError:
    known = [cell.number for cell in history.cells if python_tree(cell.source)]
    listed = ", ".join(map(str, known[-8:])) or "none"
    return CaptureError(
        f"`setup:` names cell [{number}], which has not run here, or holds no Python.",
        f"The numbers of executed cells, as in `In [3]`; the latest are: {listed}.",
        "Correct the number, or run the cell again and write its new one.",
    )
