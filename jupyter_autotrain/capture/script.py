"""The script's text, put together, and where each of its lines comes from.

Cells that `setup: [3, 5]` of the header names run before everything else.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from jupyter_autotrain.capture.items import Item
from jupyter_autotrain.capture.syntax.cells import python_tree
from jupyter_autotrain.capture.syntax.history import BindingKind, History, futures_in, is_literal
from jupyter_autotrain.capture.syntax.names import analyse
from jupyter_autotrain.capture.syntax.nodes import put, replaced
from jupyter_autotrain.errors import CaptureError

THIS_CELL = "this cell"
OWN_PLACE = "__autotrain_file__"


@dataclass(frozen=True, slots=True)
class TrialScript:
    """The code that runs in a trial.

    Attributes:
        text: The script.
        tree: The same, parsed; below it may stand the definitions that the data of the trial holds.
        source_map: For each line of `tree` "cell label:line", or "".
    """

    text: str
    tree: ast.Module
    source_map: tuple[str, ...]

    def label_and_line(self, line: int) -> tuple[str, str]:
        """Return the cell that a line comes from, and its number there; "" where it comes from none."""
        label, _, number = "".join(self.source_map[line - 1 : line]).rpartition(":")
        return label, number

    def place(self, line: int) -> str:
        """Return the origin of a line, for people: "this cell, line 4"."""
        label, number = self.label_and_line(line)
        return f"{label}, line {number}" if label else f"line {line}"


@dataclass(frozen=True, slots=True)
class CapturedCode:
    """The code to capture.

    Attributes:
        text: Its text.
        tree: The same, parsed.
        label: What to call it in the source map.
        first_line: The line of the cell on which it starts.
    """

    text: str
    tree: ast.Module
    label: str = THIS_CELL
    first_line: int = 1


def assemble(
    code: CapturedCode, items: Iterable[Item], futures: Collection[str], parameters: Collection[str]
) -> TrialScript:
    """Write the script: futures, imports, definitions and data in order, then the cell's own code."""
    lines: list[tuple[str, str]] = []
    features = sorted({*futures, *futures_in(code.tree)})
    if features:
        lines.append((f"from __future__ import {', '.join(features)}", ""))
    lines += _preparation([item for item in items if item.text])
    if lines:
        lines.append(("", ""))
    own = with_overrides(without_futures(code), parameters).rstrip("\n").split("\n")
    lines += [(line, f"{code.label}:{code.first_line + index}") for index, line in enumerate(own)]
    text = with_own_place("".join(f"{line}\n" for line, _ in lines))
    return TrialScript(text, ast.parse(text), tuple(origin for _, origin in lines))


def _preparation(items: Sequence[Item]) -> Iterator[tuple[str, str]]:
    """Yield the lines that bind every captured name, with a blank line or two around definitions."""
    written: set[str] = set()
    before = ""  # what kind of text precedes
    for item in items:
        if item.text in written:
            continue
        written.add(item.text)
        kind = "block" if "\n" in item.text and item.how in {"setup", "source"} else item.how
        yield from [("", "")] * _blank_lines(before, kind)
        for index, line in enumerate(item.text.split("\n")):
            yield line, f"{item.label}:{item.first_line + index}" if item.label else ""
        before = kind


def _blank_lines(before: str, kind: str) -> int:
    """Return how many blank lines stand between two kinds of text."""
    if before and "block" in {before, kind} and not (before == "block" and kind == "import"):
        return 2
    return int(before == "import" and kind != "import")


def without_futures(code: CapturedCode) -> str:
    """Return the code without its `from __future__` lines, which must come first in the script.

    Other lines stay put.
    """
    lines = code.text.split("\n")
    for node in code.tree.body:
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            put(lines, node, "pass" if lines[node.lineno - 1].partition(";")[1] else "")
    return "\n".join(lines)


def with_overrides(text: str, parameters: Collection[str]) -> str:
    """Let the search choose: `lr = 1e-3` becomes `lr = __autotrain_override__("lr", 1e-3)` for a searched `lr`."""
    if not parameters:
        return text
    values = [pair for node in ast.parse(text).body for pair in _literals(node) if pair[0] in parameters]
    return replaced(
        text, [(value, f'__autotrain_override__("{name}", {_written(text, value)})') for name, value in values]
    )


def _written(text: str, node: ast.expr) -> str:
    return ast.get_source_segment(text, node) or ast.unparse(node)


def with_own_place(text: str) -> str:
    """Put `__file__` next to the shipped files, as where the code was written."""
    if "__file__" not in text:
        return text
    named = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name) and node.id == "__file__"]
    if any(not isinstance(node.ctx, ast.Load) for node in named):
        return text
    return replaced(text, [(node, OWN_PLACE) for node in named])


def _literals(node: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names that a statement sets to literals: `a = 1`, `a: int = 1`, `a, b = 1, 2`."""
    pairs: list[tuple[ast.expr, ast.expr]] = []
    match node:
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)) if len(targets) == len(values):
            pairs = list(zip(targets, values, strict=True))
        case ast.Assign(targets=[target], value=value) | ast.AnnAssign(target=target, value=ast.expr() as value):
            pairs = [(target, value)]
    for target, value in pairs:
        if isinstance(target, ast.Name) and is_literal(value):
            yield target.id, value


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
