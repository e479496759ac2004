"""The cells of a public notebook, and which of them train a model."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from IPython.core.inputtransformer2 import TransformerManager

_TRAINING_METHODS = frozenset({"backward", "fit", "fit_predict", "fit_regularized", "partial_fit"})
_TRAINING_FUNCTIONS = frozenset(
    {"cross_val_predict", "cross_val_score", "cross_validate", "learning_curve", "train", "validation_curve"}
)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


@dataclass(frozen=True, slots=True)
class Cell:
    """One code cell: its place among the notebook's code cells, from 1, and its text."""

    number: int
    source: str


def read(path: Path) -> list[Cell]:
    """Return the code cells of a notebook, of format 4 or older."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    cells = notebook["cells"] if "cells" in notebook else notebook["worksheets"][0]["cells"]
    sources = [cell.get("source", cell.get("input", "")) for cell in cells if cell["cell_type"] == "code"]
    texts = [source if isinstance(source, str) else "".join(source) for source in sources]
    return [Cell(number, text) for number, text in enumerate(texts, 1) if text.strip()]


class Training:
    """Tells the cells that train, by one rule.

    A cell trains when it itself, outside of the functions and classes it defines, calls a method that trains
    (`.fit`, `.partial_fit`, `.fit_predict`, `.fit_regularized`, `.backward`, `.step` of a name with "optim" in it), a
    function that trains (`train` with arguments, `cross_val_score` and the like), or a function, a method or a class of
    an earlier cell whose body does so.
    """

    def __init__(self) -> None:
        self._helpers: set[str] = set()

    def trains(self, tree: ast.Module) -> bool:
        """Tell whether the cell trains; call it for every cell in order, since helpers are remembered."""
        self._remember(tree)
        return any(self._is_training(call) for call in _calls(tree.body, inside=False))

    def _remember(self, tree: ast.Module) -> None:
        known = -1
        while known < len(self._helpers):
            known = len(self._helpers)
            for owner in ast.walk(tree):
                if isinstance(owner, ast.ClassDef):
                    self._learn(owner.body, owner.name)
            self._learn(tree.body, "")

    def _learn(self, body: Sequence[ast.stmt], owner: str) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef) and any(map(self._is_training, _calls(node.body, inside=True))):
                self._helpers.add(owner if node.name.startswith("__") and owner else node.name)

    def _is_training(self, call: ast.Call) -> bool:
        function = call.func
        if isinstance(function, ast.Name):
            return function.id in self._helpers or (function.id in _TRAINING_FUNCTIONS and bool(call.args))
        if not isinstance(function, ast.Attribute):
            return False
        if function.attr == "step":
            return "optim" in ast.unparse(function.value)
        named = function.attr in _TRAINING_FUNCTIONS and bool(call.args) and not isinstance(call.args[0], ast.Constant)
        return named or function.attr in _TRAINING_METHODS | self._helpers


def parse(source: str) -> ast.Module | None:
    """Return a cell as Python, IPython's syntax transformed; None when it is not Python."""
    body = source
    if source.lstrip().startswith(("%%time", "%%capture")):
        body = source.lstrip().partition("\n")[2]
    try:
        return ast.parse(TransformerManager().transform_cell(body))  # type: ignore[no-untyped-call]  # IPython has no types here
    except (SyntaxError, ValueError):
        return None


def bound(tree: ast.Module) -> list[str]:
    """Return the names that a cell binds to values: neither imports nor definitions, nor those that begin with `_`."""
    names = {node.id for node in _outside(tree.body) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return sorted(name for name in names if not name.startswith("_"))


def _calls(body: Sequence[ast.AST], *, inside: bool) -> Iterator[ast.Call]:
    nodes = (node for part in body for node in ast.walk(part)) if inside else _outside(body)
    return (node for node in nodes if isinstance(node, ast.Call))


def _outside(body: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """All nodes that run with the cell: not those in functions, classes and comprehensions' own scope."""
    todo = list(body)
    while todo:
        node = todo.pop()
        if isinstance(node, _DEFINITIONS):
            continue
        yield node
        todo += _own(node)


def _own(node: ast.AST) -> list[ast.AST]:
    """Return a node's children; of a comprehension not the targets, which are no names of the cell."""
    if isinstance(node, ast.comprehension):
        return [node.iter, *node.ifs]
    return list(ast.iter_child_nodes(node))
