"""The script's text, put together, and where each of its lines comes from."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from jupyter_autotrain.capture.items import Item
from jupyter_autotrain.capture.syntax.history import futures_in, is_literal
from jupyter_autotrain.capture.syntax.nodes import put, replaced

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
