"""Which files the code of a trial opens, and where: every call that opens one, and what its path may be."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jupyter_autotrain.capture import looking
from jupyter_autotrain.capture.files.indexing import index
from jupyter_autotrain.capture.files.live_values import objects
from jupyter_autotrain.capture.files.openers import FileCall, FileOperation, uses
from jupyter_autotrain.capture.files.path_patterns import is_known
from jupyter_autotrain.capture.files.path_values import PathValues
from jupyter_autotrain.capture.files.program import Program, ProgramScope, Source

THIS_CELL = "this cell"


@dataclass(frozen=True, slots=True)
class Opening:
    """A call that does something with files.

    Attributes:
        use: The call, and what it does.
        texts: What the path may be; parts that are known only at run time are `ANY` or `STAR` (`path_methods`).
        origin: Where the call is, as shown to users: "line 4" of the cell, or "cell [3], line 2".
        order: (text, line): the order of the calls in the text.
        root: The folder of the module that it is in, where that is not the notebook's; else None.
    """

    use: FileCall
    texts: frozenset[str]
    origin: str
    order: tuple[str, int]
    root: Path | None = None


@dataclass(frozen=True, slots=True)
class TrialCode:
    """What runs in a trial.

    Attributes:
        script: The script.
        source_map: For each of its lines "cell label:line", or "".
        values: The captured values by name.
        parameters: Names that the search chooses.
        modules: Files of the modules that travel with it, by their path in the trial's folder.
    """

    script: ast.Module
    source_map: Sequence[str]
    values: Mapping[str, object]
    parameters: Collection[str]
    modules: Mapping[str, Path] = field(default_factory=dict)


def openings(code: TrialCode) -> list[Opening]:
    """Every call of the code that does something with files, in the order of the text."""
    program = index([Source(code.script), *_sources(code.modules)])
    paths = PathValues(program, code.values, code.parameters)
    found = [
        _opening(use, paths, scope, code.source_map)
        for call, scope in program.calls
        if scope in program.live
        for use in _uses(call, scope, program)
    ]
    return [one for one in found if one.texts] + list(_held(code.values))


def import_roots(code: TrialCode) -> list[str]:
    """Folders that the script adds to `sys.path`, as far as they are known."""
    if not any(isinstance(node, ast.Attribute) and ast.unparse(node) == "sys.path" for node in ast.walk(code.script)):
        return []
    source = Source(code.script)
    program = index([source])
    paths = PathValues(program, code.values, code.parameters)
    adds = [
        (call.args[-1], scope)
        for call, scope in program.calls
        if call.args and program.dotted(call.func, source) in {"sys.path.append", "sys.path.insert"}
    ]
    return [text for path, scope in adds for text in sorted(paths.texts(path, scope)) if is_known(text)]


def _uses(call: ast.Call, scope: ProgramScope, program: Program) -> Iterator[FileCall]:
    if not program.function(call, scope):
        yield from uses(call, program.dotted(call.func, scope.source))


def _opening(use: FileCall, paths: PathValues, scope: ProgramScope, source_map: Sequence[str]) -> Opening:
    line = use.call.lineno
    origin = f"{scope.source.relative_path}, line {line}" if scope.source.relative_path else origin_of(source_map, line)
    return Opening(use, paths.texts(use.path, scope), origin, (scope.source.relative_path, line), scope.source.root)


def origin_of(source_map: Sequence[str], line: int) -> str:
    """Where a line of the script comes from, for people."""
    label, _, number = (source_map[line - 1] if line <= len(source_map) else "").rpartition(":")
    if not label:
        return "the notebook"
    return f"line {number}" if label == THIS_CELL else f"{label}, line {number}"


def _sources(modules: Mapping[str, Path]) -> Iterator[Source]:
    for relative_path, path in modules.items():
        if relative_path.endswith(".py"):
            try:
                tree = ast.parse(path.read_bytes())
            except (OSError, SyntaxError, ValueError):
                continue  # it fails to import here too
            yield Source(tree, relative_path, path.parents[relative_path.count("/")])


def _held(values: Mapping[str, object]) -> Iterator[Opening]:
    """Data sets of torchvision that read the files of a folder lazily."""
    for name, value in values.items():
        for one in objects([value]):
            is_folder = any(kind.__name__ == "DatasetFolder" for kind in type(one).__mro__)
            root = looking.own_attributes(one).get("root") if is_folder else None
            if isinstance(root, str | Path):
                call = ast.Call(ast.Name(name), [], [])
                yield Opening(FileCall(FileOperation.FOLDER, call.func, call), frozenset([str(root)]), name, ("", 0))
