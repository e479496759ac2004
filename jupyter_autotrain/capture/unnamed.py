"""Definitions that a trial needs although no code names them: by a text, by their base, by a pickle.

What the code of pickled functions opens, imports and reads counts like what the script does.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import linecache
import mmap
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from types import CodeType

from jupyter_autotrain.capture.definitions import sources
from jupyter_autotrain.capture.script import TrialScript
from jupyter_autotrain.capture.slice import Slice
from jupyter_autotrain.capture.syntax.cells import Cell
from jupyter_autotrain.capture.syntax.scopes import Function

_BYTES = (bytes, bytearray, mmap.mmap)
_LISTS = b"__subclasses__"
_MAIN = re.compile(rb"__main__\.")
_PATH = re.compile(rb"\b__main__\.([A-Za-z_]\w*)", re.ASCII)
_PICKLES = (b"\x80", b"PK")
"""The first bytes of a pickle, and of an archive of torch."""
_READ_BYTES = 64 << 20


def reached(code: str, slice_: Slice) -> set[str]:
    """Return the notebook's definitions that the code or the data of a trial reach, but that are not captured yet.

    Args:
        code: The cell's code.
        slice_: The captured names.
    """
    texts = [item.text.encode() for item in slice_.items.values() if item.how == "source"]
    texts += [code.encode(), *(pickled.content for pickled in slice_.values.pickles.values())]
    names = set[str]()
    for path in _PATH.findall(b"\n".join(filter(_MAIN.search, texts))):
        if sources.is_definition(slice_.namespace.get(path.decode()), slice_.home):
            names.add(path.decode())
    if any(_LISTS in text for text in texts):
        names |= _subclasses(slice_)
    return names - set(slice_.items)


def _subclasses(slice_: Slice) -> set[str]:
    """Return the notebook's subclasses of captured classes."""
    found = set[str]()
    for name, item in slice_.items.items():
        value = slice_.namespace.get(name)
        if item.how in {"data", "source"} and isinstance(value, type):
            for one in _listed(value):
                found.add(slice_.name_of(one).partition(".")[0])
    return found - {""}


def _listed(cls: type) -> list[type]:
    return type.__subclasses__(cls)


def in_pickles(files: Iterable[Path], slice_: Slice) -> set[str]:
    """Return the notebook's definitions that pickles among the files and the bytes of a trial name.

    A pickle names a class by its module and its name: what holds both texts is taken to do so.

    Args:
        files: The files.
        slice_: The captured names; those are left out.
    """
    values = slice_.namespace.items()
    names = {name for name, value in values if sources.is_definition(value, slice_.home)} - set(slice_.items)
    captured = map(slice_.namespace.get, slice_.values.pickles)
    found = set[str]()
    for content in chain(captured, _contents(files)):
        if isinstance(content, _BYTES) and content[:2].startswith(_PICKLES) and _has(content, slice_.home):
            found |= {name for name in names if _has(content, name)}
    return found


def _has(content: bytes | bytearray | mmap.mmap, name: str) -> bool:
    return content.find(name.encode(), 0, _READ_BYTES) >= 0


def _contents(files: Iterable[Path]) -> Iterator[mmap.mmap]:
    for path in files:
        with (
            contextlib.suppress(OSError, ValueError),  # gone meanwhile, or empty
            path.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
        ):
            yield content


@dataclass(frozen=True, slots=True)
class PickledDefinition:
    """A definition that data of a trial holds.

    Attributes:
        node: Its statement; a method's class; a lambda as a statement.
        lines: The lines of its text.
    """

    node: ast.stmt
    lines: tuple[str, ...]


def appended(script: TrialScript, found: Iterable[PickledDefinition], cells: Sequence[Cell]) -> TrialScript:
    """Put definitions below a script, with the places that they come from.

    Args:
        script: The script.
        found: The definitions.
        cells: The executed cells.
    """
    body = list(script.tree.body)
    places = list(script.source_map)
    for one in found:
        node = copy.deepcopy(one.node)
        if isinstance(node, Function | ast.ClassDef):
            node.decorator_list = []  # they have run here
        label = _label(one, cells)
        body.append(ast.increment_lineno(node, len(places) + 1 - node.lineno))
        places += [f"{label}:{one.node.lineno + index}" if label else "" for index in range(len(one.lines))]
    return replace(script, tree=ast.Module(body, []), source_map=tuple(places))


def trees(codes: Iterable[CodeType]) -> list[ast.Module]:
    """Return the same definitions, each as code of its own."""
    return [ast.Module([one.node], []) for one in definitions(codes)]


def definitions(codes: Iterable[CodeType]) -> list[PickledDefinition]:
    """Return the definitions that some code was compiled from, as far as their text is known."""
    texts: dict[str, list[tuple[int, str, PickledDefinition]]] = {}
    found: dict[int, PickledDefinition] = {}
    for code in codes:
        file = code.co_filename
        if file not in texts:
            texts[file] = list(_definitions_in([line.rstrip("\n") for line in linecache.getlines(file)]))
        for first_line, name, definition in texts[file]:
            if (first_line, name) == (code.co_firstlineno, code.co_name):
                found[id(definition.node)] = definition
    return list(found.values())


def _definitions_in(lines: Sequence[str]) -> Iterator[tuple[int, str, PickledDefinition]]:
    """Yield each function of a text: where its code begins, its name, and the definition that it is a part of."""
    try:
        tree = ast.parse("\n".join(lines))
    except (SyntaxError, ValueError):
        return
    for around in ast.walk(tree):
        for node in ast.iter_child_nodes(around):
            if isinstance(node, Function):
                first_line = min(part.lineno for part in (node, *node.decorator_list))
                statement = around if isinstance(around, ast.ClassDef) else node
                yield first_line, node.name, _definition(statement, lines)
            elif isinstance(node, ast.Lambda):
                yield node.lineno, "<lambda>", _definition(ast.copy_location(ast.Expr(node), node), lines)


def _definition(node: ast.stmt, lines: Sequence[str]) -> PickledDefinition:
    return PickledDefinition(node, tuple(lines[node.lineno - 1 : node.end_lineno]))


def _label(definition: PickledDefinition, cells: Sequence[Cell]) -> str:
    """Return the newest cell that has the definition on these very lines, as users know it; "" when none does."""
    start = definition.node.lineno - 1
    for cell in reversed(cells):
        if tuple(cell.source.split("\n")[start : start + len(definition.lines)]) == definition.lines:
            return cell.label
    return ""
