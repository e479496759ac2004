"""The script's text, put together, and where each of its lines comes from."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from jupyter_autotrain.capture.items import Item
from jupyter_autotrain.capture.syntax.editing import put, replaced
from jupyter_autotrain.capture.syntax.history import futures_in, is_literal

THIS_CELL = "this cell"
OWN_PLACE = "__autotrain_file__"


@dataclass(frozen=True, slots=True)
class AssembledScript:
    """A script and its source map: for each line "label:line", or ""."""

    text: str
    source_map: tuple[str, ...]


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
) -> AssembledScript:
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
    text = "".join(f"{line}\n" for line, _ in lines)
    return AssembledScript(with_own_place(text), tuple(origin for _, origin in lines))


def place(source_map: Sequence[str], line: int) -> str:
    """Where a line of the script comes from, for people: "this cell, line 4"."""
    label, _, number = (source_map[line - 1] if line <= len(source_map) else "").rpartition(":")
    return f"{label}, line {number}" if label else f"line {line}"


def _preparation(items: Sequence[Item]) -> Iterator[tuple[str, str]]:
    """The lines that bind every captured name; a blank line or two around definitions."""
    written: set[str] = set()
    before = ""  # what kind of text precedes
    for item in items:
        if item.text in written:
            continue
        written.add(item.text)
        multiline = "\n" in item.text and item.how == "source"
        if before and (multiline or (before in {"block", "import"} and item.how != "import")):
            yield from [("", "")] * (2 if multiline or before == "block" else 1)
        for index, line in enumerate(item.text.split("\n")):
            yield line, f"{item.label}:{item.first_line + index}" if item.label else ""
        before = "block" if multiline else item.how


def without_futures(code: CapturedCode) -> str:
    """The code without its `from __future__` lines, which must come first in the script; other lines stay put."""
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
    """The names that a statement sets to literals: `a = 1`, `a: int = 1`, `a, b = 1, 2`."""
    targets: Sequence[ast.expr]
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        targets = node.targets
        values = [node.value]
        if isinstance(targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple):
            targets, values = targets[0].elts, node.value.elts
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        targets = [node.target]
        values = [node.value]
    else:
        return
    if len(targets) == len(values):
        for target, value in zip(targets, values, strict=True):
            if isinstance(target, ast.Name) and is_literal(value):
                yield target.id, value
