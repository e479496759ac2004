"""The texts of some code, and of the values that it uses, that may be names of files."""

from __future__ import annotations

import ast
import posixpath
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import PurePath

from jupyter_autotrain.capture import looking
from jupyter_autotrain.capture.files import openings
from jupyter_autotrain.capture.script import THIS_CELL, TrialScript
from jupyter_autotrain.capture.syntax.scopes import own_texts
from jupyter_autotrain.capture.syntax.texts import text_of

UNKNOWN = "\0"
"""Stands for a part of a path that is known only at run time."""
_LONGEST = 400
_MOST_TEXTS = 20_000
_DEEPEST = 4
_HOLES = re.compile(r"%[^a-zA-Z%]*[a-zA-Z]|\{[^{}]*\}")


@dataclass(frozen=True, slots=True)
class TrialCode:
    """The code that runs in a trial, the captured values that it finds there, and the names that the search chooses."""

    script: TrialScript
    values: Mapping[str, object]
    parameters: Collection[str]


@dataclass(frozen=True, slots=True)
class PathText:
    """A text of the code: the text, its place for people, its line, and the folder of the module that holds it."""

    text: str
    origin: str = ""
    line: int = 0
    home: str = ""


class PathReader:
    """A reader of the texts of one source that may be names of files.

    Args:
        tree: The source.
        code: The code of the trial.
        relative_path: The module's place in the trial's folder; "" for the script.

    Attributes:
        calls: The calls of the source.
        openings: Those that open files.
    """

    def __init__(self, tree: ast.Module, code: TrialCode, relative_path: str = "") -> None:
        self._code = code
        self._relative_path = relative_path
        self._nodes = list(ast.walk(tree))
        self._own = own_texts(self._nodes)
        self._own |= {name: text for name, node in self._defaults() if (text := self.known(node))}
        self.calls = [node for node in self._nodes if isinstance(node, ast.Call)]
        self.openings = openings.find(self.calls)

    def texts(self) -> Iterator[PathText]:
        """Yield the texts, parts of longer ones among them, but those that only what writes has."""
        skipped = self._skipped
        for node in self._nodes:
            text = self.known(node) if isinstance(node, ast.expr) and node not in skipped else ""
            if _may_be_path(text):
                words = text.split() if isinstance(node, ast.Constant) and " " in text else []
                yield from (self._placed(one, node) for one in (text, *words))

    def known(self, node: ast.expr | None) -> str:
        """Return the text of an expression, with `UNKNOWN` for what is not known below a known folder; else ""."""
        text = self._text_of(node) if node is not None else ""
        text = text.removeprefix(f"{UNKNOWN}/")  # an unknown folder: most often that of the code itself
        return text if "/" in text.partition(UNKNOWN)[0] or UNKNOWN not in text else ""

    def is_known(self, node: ast.expr) -> bool:
        """Tell whether the files that an expression may name are known."""
        return bool(self.known(node)) and not self._text_of(node).startswith(f"{UNKNOWN}/")

    def _text_of(self, node: ast.expr) -> str:
        match node:
            case ast.BinOp(left=left, op=ast.Mod()) | ast.Call(func=ast.Attribute(value=left, attr="format")):
                return _HOLES.sub(UNKNOWN, self.known(left))
            case ast.Call(func=ast.Attribute(value=owner, attr="glob" | "rglob" as how), args=[pattern]):
                folder = self.known(owner)
                deep = "**/" if how == "rglob" else ""
                return f"{folder}/{deep}{self.known(pattern)}" if folder else self.known(pattern)
        found = text_of(node, self._named, UNKNOWN)
        return str(found) if isinstance(found, str | PurePath) else ""

    def origin(self, node: ast.AST) -> str:
        """Return the place of a node, for people."""
        line = getattr(node, "lineno", 0)
        if self._relative_path:
            return f"{self._relative_path}, line {line}"
        label, number = self._code.script.label_and_line(line)
        if not label:
            return "the notebook"
        return f"line {number}" if label == THIS_CELL else f"{label}, line {number}"

    def _defaults(self) -> Iterator[tuple[str, ast.expr]]:
        """Yield the parameters with a default whose names mean nothing else, each with its default."""
        bound = Counter(_bound_names(self._nodes))
        for node in self._nodes:
            if isinstance(node, ast.arguments):
                positional = [*node.posonlyargs, *node.args][-len(node.defaults) :]
                pairs = zip(positional, node.defaults, strict=False)
                yield from ((one.arg, default) for one, default in pairs if bound[one.arg] == 1)

    def _placed(self, text: str, node: ast.AST) -> PathText:
        return PathText(text, self.origin(node), getattr(node, "lineno", 0), posixpath.dirname(self._relative_path))

    def _named(self, name: str) -> object:
        if name in self._code.parameters:
            return None
        return self._own[name] if name in self._own else self._code.values.get(name)

    @cached_property
    def _skipped(self) -> set[ast.AST]:
        """The expressions that name no file: keys, parts of longer texts, and what is only written."""
        skipped: set[ast.AST] = set()
        for one in self.openings:
            if one.mode == "w" and one.path is not None:
                skipped.update(ast.walk(one.path))
        for node in self._nodes:
            match node:
                case ast.Expr(value=ast.Constant() as text) | ast.Subscript(slice=ast.Constant() as text):
                    skipped.add(text)
                case ast.Dict(keys=keys):
                    skipped.update(filter(None, keys))
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in self._own:
                    skipped.add(value)
                case ast.Call(func=ast.Attribute(value=ast.Attribute(attr="path"))) if is_of_search_path(node):
                    skipped.update(ast.walk(node))
                case ast.BinOp() | ast.JoinedStr() | ast.Call() if self.known(node):
                    skipped.update(part for part in ast.walk(node) if part is not node)
        return skipped


def is_of_search_path(call: ast.Call) -> bool:
    """Tell whether a call is of a method of `sys.path`."""
    return ast.unparse(call.func).startswith("sys.path.")


def texts_in(value: object, depth: int = 0) -> Iterator[str]:
    """Yield the texts and paths that a value holds, in containers and attributes too."""
    if looking.is_kind(value, (str, PurePath)):
        yield from filter(_may_be_path, [str(value)])
    elif depth < _DEEPEST and not looking.is_kind(value, (bytes, int, float, type)):
        for _, _, inner in islice(looking.parts(value), _MOST_TEXTS):
            yield from texts_in(inner, depth + 1)
    elif not depth and looking.is_kind(value, type):  # one that travels by value
        yield from texts_in(dict(vars(value)), depth + 1)


def _may_be_path(text: str) -> bool:
    return 0 < len(text) <= _LONGEST and "\n" not in text


def _bound_names(nodes: Sequence[ast.AST]) -> Iterator[str]:
    for node in nodes:
        match node:
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
                yield name
