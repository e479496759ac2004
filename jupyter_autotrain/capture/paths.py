"""Paths that code puts together from literals, such as `Path("data") / "x.csv"` or `os.path.join(root, "x.csv")`."""

from __future__ import annotations

import ast
import itertools
import posixpath
from collections.abc import Mapping
from pathlib import PurePath

from jupyter_autotrain.capture.script import OWN_PLACE

_MADE_FROM_PARTS = frozenset({"Path", "PosixPath", "PurePath", "PurePosixPath", "join"})
_SAME = frozenset({"Path", "abspath", "absolute", "expanduser", "fspath", "normpath", "realpath", "resolve", "str"})
_HERE = frozenset({"cwd", "getcwd"})
_MOST_TEXTS, _LONGEST, _MOST_LOOKS, _MOST_DEPTH = 32, 240, 50_000, 30

Texts = frozenset[str]
_NONE: Texts = frozenset()


class Paths:
    """Gives the texts that an expression may have, as far as literals, assignments and captured values tell.

    Args:
        tree: The script; its assignments to plain names are known.
        values: Captured values by name; texts and paths are known.
    """

    def __init__(self, tree: ast.Module, values: Mapping[str, object]) -> None:
        self._known = {name: frozenset([str(v)]) for name, v in values.items() if isinstance(v, str | PurePath)}
        self._looks = self._depth = 0
        self._known |= dict.fromkeys(("__file__", OWN_PLACE), frozenset(["main.py"]))
        self._assigned: dict[str, list[ast.expr]] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in targets:
                    if isinstance(target, ast.Name):
                        self._assigned.setdefault(target.id, []).append(node.value)

    def of(self, node: ast.AST) -> Texts:
        """The texts of an expression; none when they cannot be told."""
        if isinstance(node, ast.Constant):
            return frozenset([node.value]) if isinstance(node.value, str) else _NONE
        if self._looks >= _MOST_LOOKS or self._depth >= _MOST_DEPTH:
            return _NONE
        self._looks, self._depth = self._looks + 1, self._depth + 1
        found = self._made(node)
        self._depth -= 1
        return frozenset(text for text in found if len(text) <= _LONGEST)

    def _made(self, node: ast.AST) -> Texts:
        found = _NONE
        match node:
            case ast.Name(id=name):
                found = self._name(name)
            case ast.BinOp(left=left, op=ast.Div() | ast.Add() as operator, right=right):
                found = self._combined([left, right], "/" if isinstance(operator, ast.Div) else "")
            case ast.JoinedStr(values=parts):
                found = self._combined([_formatted(part) for part in parts], "")
            case ast.Attribute(value=inner, attr="parent"):
                found = frozenset(posixpath.dirname(text) for text in self.of(inner))
            case ast.Call():
                found = self._call(node)
        return found

    def _name(self, name: str) -> Texts:
        # A name that is made from itself tells nothing new.
        assigned, texts = self._assigned.pop(name, ()), self._known.get(name, _NONE)
        for value in assigned:
            texts |= self.of(value)
        self._known[name] = frozenset(sorted(texts)[:_MOST_TEXTS])
        return self._known[name]

    def _combined(self, parts: list[ast.expr], between: str) -> Texts:
        choices = [self.of(part) for part in parts]
        products = itertools.islice(itertools.product(*map(sorted, choices)), _MOST_TEXTS)
        return frozenset(posixpath.join(*texts) if between else "".join(texts) for texts in products if texts)

    def _call(self, call: ast.Call) -> Texts:
        name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
        owner = [call.func.value] if isinstance(call.func, ast.Attribute) else []
        if name in _HERE:
            return frozenset(["."])
        if name == "joinpath":
            return self._combined([*owner, *call.args], "/")
        if name in _MADE_FROM_PARTS and call.args:
            return self._combined(call.args, "/")
        if name == "dirname" and call.args:
            return frozenset(posixpath.dirname(text) for text in self.of(call.args[0]))
        if name in _SAME:
            inner = call.args[:1] or owner
            return self.of(inner[0]) if inner else _NONE
        return _NONE


def _formatted(part: ast.expr) -> ast.expr:
    plain = isinstance(part, ast.FormattedValue) and part.conversion == -1 and part.format_spec is None
    return part.value if plain and isinstance(part, ast.FormattedValue) else part
