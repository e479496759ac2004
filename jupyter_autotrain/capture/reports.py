"""Which metrics a script reports, by static analysis."""

from __future__ import annotations

import ast
import copy
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jupyter_autotrain.capture import looking
from jupyter_autotrain.capture.files import modules
from jupyter_autotrain.capture.name_conflicts import NameConflict
from jupyter_autotrain.capture.script import place as script_place
from jupyter_autotrain.core.matching import closest_match
from jupyter_autotrain.errors import CaptureError

_NAME = "report"
_PACKAGE = "jupyter_autotrain"
_RUNS_TEXT = frozenset({"__import__", "eval", "exec", "system"})
_RUNS_PROGRAMS = frozenset({"importlib", "runpy", "subprocess"})
_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Reports:
    """What is reported.

    Attributes:
        names: Metric -> the place of its first report, such as "this cell, line 4".
        complete: False where more may be reported than the text shows.
        imports: The installed packages that the code uses; one that reports itself is seen only when loaded.
        notebooks: What `report` is where it is the notebook's and not the trial's; else "".
    """

    names: Mapping[str, str] = field(default_factory=dict)
    complete: bool = False
    imports: frozenset[str] = frozenset()
    notebooks: str = ""


def find(
    script: ast.Module,
    source_map: Sequence[str],
    files: Mapping[str, Path],
    data: Iterable[bytes] = (),
    conflicts: Sequence[NameConflict] = (),
) -> Reports:
    """Find the metrics that a script and the modules that travel with it report.

    Args:
        script: The script.
        source_map: For each of its lines "cell label:line", or "".
        files: The files that travel with it.
        data: The pickles that travel with it; they may hold code.
        conflicts: The trial's names that are the notebook's in the script.
    """
    notebooks = {one.name: one.what for one in conflicts}
    script = _NotebookNames(frozenset(notebooks)).visit(copy.deepcopy(script)) if notebooks else script
    names: dict[str, str] = {}
    trees = [(script, ""), *_modules(files)]
    complete = not any(_NAME.encode() in content for content in data)
    for tree, file in trees:
        complete = complete and not _hides(tree)
        for call in _calls(tree):
            place = f"{file}, line {call.lineno}" if file else script_place(source_map, call.lineno)
            for metric in _metrics(call):
                complete = complete and metric is not None
                if metric is not None:
                    names.setdefault(metric, place)
    tops = {name.partition(".")[0] for tree, _ in trees for name in modules.imported(tree)}
    return Reports(names, complete, frozenset(tops), notebooks.get(_NAME, ""))


def check(reports: Reports, objective: str) -> None:
    """Refuse an objective that nothing reports; no error where that is not known.

    Args:
        reports: What the code reports.
        objective: The metric that ranks trials, or "".

    Raises:
        CaptureError: No report names the objective; with the nearest name that is reported.
    """
    if not objective or not reports.complete or objective in reports.names:
        return
    if any(_reports_by_itself(top) for top in reports.imports):
        return
    if reports.notebooks:
        raise _notebooks(reports, objective)
    if not reports.names:
        raise CaptureError(
            f"The objective is {objective!r}, but this code calls report(...) nowhere.",
            "A trial is ranked by a metric that it reports.",
            f"Write report({objective}=...) where its value is known.",
        )
    near = closest_match(objective, reports.names)
    shown = near or next(iter(reports.names))
    more = f" and {len(reports.names) - _SHOWN} more" if len(reports.names) > _SHOWN else ""
    guess = f" Did you mean {near!r}?" if near else ""
    action = f"Write {near!r} in `objective:`, or" if near else "Correct `objective:`, or write"
    raise CaptureError(
        f"No report(...) names the objective {objective!r}; {reports.names[shown]} reports {shown!r}.",
        f"Reported is: {', '.join(sorted(reports.names)[:_SHOWN])}{more}.{guess}",
        f"{action} report({objective}=...) where its value is known.",
    )


def _notebooks(reports: Reports, objective: str) -> CaptureError:
    others = f"; trials report {', '.join(sorted(reports.names)[:_SHOWN])}" if reports.names else ""
    return CaptureError(
        f"The objective is {objective!r}, but report is {reports.notebooks}, and sends nothing{others}.",
        "A trial is ranked by a metric that it reports; the trial's own is trial.report(...).",
        f"Write trial.report({objective}=...) where its value is known (at.report where `trial` is yours too).",
    )


class _NotebookNames(ast.NodeTransformer):
    """Gives other names to what is the notebook's, so that it is not mistaken for the trial's.

    Args:
        taken: The names.
    """

    def __init__(self, taken: frozenset[str]) -> None:
        self.taken = taken

    def _renamed(self, name: str) -> str:
        return f"{name} of the notebook" if name in self.taken else name

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = self._renamed(node.id)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.name = self._renamed(node.name)
        return self.generic_visit(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        node.name = self._renamed(node.name)
        return self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.name = self._renamed(node.name)
        return self.generic_visit(node)

    def visit_alias(self, node: ast.alias) -> ast.AST:
        node.asname = self._renamed(node.asname or node.name)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if isinstance(node.value, ast.Name) and node.value.id in self.taken:
            node.attr = f"{node.attr} of the notebook"
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Name) and node.func.id == "__autotrain_data__":
            node.args = []
        return self.generic_visit(node)


def _modules(files: Mapping[str, Path]) -> Iterator[tuple[ast.Module, str]]:
    """The modules among the files that may report."""
    for place, path in files.items():
        content = path.read_bytes() if place.endswith(".py") else b""
        if _NAME.encode() in content:
            try:
                yield ast.parse(content), place
            except (SyntaxError, ValueError):
                continue  # it would fail in the trial too


def _calls(tree: ast.Module) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _named(node.func):
            yield node


def _named(node: ast.AST) -> bool:
    """Whether an expression is `report` or `anything.report`."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name == _NAME
    return False


def _metrics(call: ast.Call) -> Iterator[str | None]:
    """The metrics that a call names; None for those that are known only at run time."""
    for keyword in call.keywords:
        if keyword.arg is not None:
            yield from [keyword.arg] if keyword.arg != "step" else []
        elif isinstance(keyword.value, ast.Dict):
            yield from (_text(key) for key in keyword.value.keys)
        elif isinstance(keyword.value, ast.Call) and isinstance(keyword.value.func, ast.Name):
            plain = keyword.value.func.id == "dict" and not keyword.value.args
            yield from _metrics(keyword.value) if plain else [None]
        else:
            yield None


def _text(key: ast.expr | None) -> str | None:
    return key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else None


def _hides(tree: ast.Module) -> bool:
    """Whether code may report in a way that its text does not show."""
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return any(_binds(node) or _runs(node) or (_named(node) and id(node) not in called) for node in ast.walk(tree))


def _binds(node: ast.AST) -> bool:
    """Whether a definition, a parameter, an import or a text gives the name `report` to something."""
    match node:
        case ast.FunctionDef(name=text) | ast.AsyncFunctionDef(name=text) | ast.ClassDef(name=text):
            return text == _NAME
        case ast.arg(arg=text) | ast.Constant(value=text):
            return bool(text == _NAME)
        case ast.Import(names=names):
            return any(alias.asname == _NAME for alias in names)
        case ast.ImportFrom():
            return _imports_hidden(node)
    return False


def _runs(node: ast.AST) -> bool:
    """Whether code runs other code that cannot be seen."""
    match node:
        case ast.Import(names=names):
            return any(alias.name.partition(".")[0] in _RUNS_PROGRAMS for alias in names)
        case ast.ImportFrom(module=str(module)):
            return module.partition(".")[0] in _RUNS_PROGRAMS
        case ast.Call(func=ast.Name(id="__import__"), args=[ast.Constant()]):
            return False  # as an import statement
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name in _RUNS_TEXT
    return False


def _imports_hidden(node: ast.ImportFrom) -> bool:
    ours = (node.module or "").partition(".")[0] == _PACKAGE
    return any(((alias.asname or alias.name) == _NAME) != (ours and alias.name == _NAME) for alias in node.names)


def _reports_by_itself(top: str) -> bool:
    """Whether a loaded package uses this one."""
    if top in {_PACKAGE, "__main__"} or top in sys.stdlib_module_names:
        return False
    own = sys.modules.get(_PACKAGE)
    loaded = [module for name, module in list(sys.modules.items()) if name == top or name.startswith(f"{top}.")]
    values = [value for module in loaded for value in list(getattr(module, "__dict__", {}).values())]
    return any(value is own or looking.attribute(value, "__module__") == f"{_PACKAGE}.worker.api" for value in values)
