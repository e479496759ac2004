"""The metrics that a script reports, found by static analysis."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jupyter_autotrain.agent.ranks.autolog import LIBRARIES
from jupyter_autotrain.capture import looking
from jupyter_autotrain.capture.files import modules
from jupyter_autotrain.capture.name_conflicts import NameConflict
from jupyter_autotrain.capture.script import TrialScript
from jupyter_autotrain.capture.syntax.nodes import written_text
from jupyter_autotrain.core.text_format import closest_match
from jupyter_autotrain.errors import CaptureError

_NAME = "report"
_PACKAGE = "jupyter_autotrain"
_API = f"{_PACKAGE}.agent.ranks.api"
_RUNS_TEXT = frozenset({"__import__", "eval", "exec", "system"})
_RUNS_PROGRAMS = frozenset({"importlib", "runpy", "subprocess"})
_STAND_INS = frozenset({"nni", "ray", "wandb"})  # report by calls of their own
_SCIKIT_LEARN = "sklearn"
_NO_LOOPS = frozenset({"datasets", "exceptions", "metrics", "preprocessing", "utils"})  # of scikit-learn
_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Reports:
    """The metrics that are reported.

    Attributes:
        names: Metric -> the place of its first report, such as "this cell, line 4".
        complete: False where more may be reported than the text shows.
        imports: The installed packages that the code uses; one that reports itself is seen only when loaded.
        loops: The libraries whose loops and calls report by themselves.
        notebooks: What `report` is where it is the notebook's and not the trial's; else "".
    """

    names: Mapping[str, str] = field(default_factory=dict)
    complete: bool = False
    imports: frozenset[str] = frozenset()
    loops: frozenset[str] = frozenset()
    notebooks: str = ""


def find(
    script: TrialScript,
    files: Mapping[str, Path],
    data: Iterable[bytes] = (),
    conflicts: Sequence[NameConflict] = (),
) -> Reports:
    """Find the metrics that a script and the modules that travel with it report.

    Args:
        script: The script.
        files: The files that travel with it.
        data: The pickles that travel with it; they may hold code.
        conflicts: The trial's names that are the notebook's in the script.
    """
    notebooks = {one.name: one.what for one in conflicts}
    codes = [_Code(script.tree, "", frozenset(notebooks)), *_modules(files)]
    is_hidden = any(map(_hides, codes)) or any(_NAME.encode() in content for content in data)
    names: dict[str | None, str] = {}
    for code in codes:
        for metric, place in code.metrics(script):
            names.setdefault(metric, place)
    known = {metric: place for metric, place in names.items() if metric is not None}
    imported = set[str]().union(*(modules.imported(code.tree) for code in codes))
    tops = frozenset(name.partition(".")[0] for name in imported)
    complete = not is_hidden and len(known) == len(names)
    return Reports(known, complete, tops, frozenset(_loops(imported)), notebooks.get(_NAME, ""))


def _loops(imported: Iterable[str]) -> Iterator[str]:
    """Yield the libraries among imported modules that report by themselves."""
    for name in imported:
        top, _, inner = name.partition(".")
        if top == _SCIKIT_LEARN:
            yield from [top] if inner and inner.partition(".")[0] not in _NO_LOOPS else []
        elif top in LIBRARIES or name in LIBRARIES:
            yield top


def check(reports: Reports, objective: str, *, autolog: bool = True) -> None:
    """Refuse an objective that nothing reports; no error where that is not known.

    Args:
        reports: What the code reports.
        objective: The metric that ranks trials, or "".
        autolog: Whether libraries report by themselves. Where scikit-learn alone does, and the code reports too, the
            objective is expected in what the code reports.

    Raises:
        CaptureError: No report names the objective; with the nearest name that is reported.
    """
    if not objective or not reports.complete or objective in reports.names:
        return
    if _STAND_INS & reports.imports or any(map(_reports_by_itself, reports.imports)):
        return
    if autolog and reports.loops - ({_SCIKIT_LEARN} if reports.names else set()):
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


@dataclass(frozen=True, slots=True)
class _Code:
    """Code that may report.

    Attributes:
        tree: The code.
        file: The module that it is; "" for the script.
        taken: The trial's names that are the notebook's in it.
    """

    tree: ast.Module
    file: str = ""
    taken: frozenset[str] = frozenset()

    def calls(self) -> list[ast.Call]:
        """Return the calls of the trial's `report`."""
        return [node for node in ast.walk(self.tree) if isinstance(node, ast.Call) and self.names(node.func)]

    def metrics(self, script: TrialScript) -> Iterator[tuple[str | None, str]]:
        """Yield the metrics that the calls name, each with its place; None for those known only at run time."""
        for call in self.calls():
            place = f"{self.file}, line {call.lineno}" if self.file else script.place(call.lineno)
            for metric in _metrics(call):
                yield metric, place

    def names(self, node: ast.AST) -> bool:
        """Tell whether an expression is `report` or `anything.report`, and the trial's."""
        match node:
            case ast.Name(id=name):
                return name == _NAME and name not in self.taken
            case ast.Attribute(value=owner, attr=name):
                return name == _NAME and getattr(owner, "id", "") not in self.taken
        return False


def _modules(files: Mapping[str, Path]) -> Iterator[_Code]:
    """Yield the modules among the files that may report, or use a library that does."""
    for place, path in files.items():
        content = path.read_bytes() if place.endswith(".py") else b""
        if any(text.encode() in content for text in (_NAME, *LIBRARIES)):
            try:
                yield _Code(ast.parse(content), place)
            except (SyntaxError, ValueError):
                continue  # it would fail in the trial too


def _metrics(call: ast.Call) -> Iterator[str | None]:
    """Yield the metrics that a call names, with None for those that are known only at run time."""
    if len(call.args) == 2:
        yield None  # as in Optuna: report(value, step)
    for keyword in call.keywords:
        if keyword.arg is not None:
            yield from [keyword.arg] if keyword.arg != "step" else []
        elif isinstance(keyword.value, ast.Dict):
            for key in keyword.value.keys:
                yield written_text(key) or None
        elif isinstance(keyword.value, ast.Call) and isinstance(keyword.value.func, ast.Name):
            plain = keyword.value.func.id == "dict" and not keyword.value.args
            yield from _metrics(keyword.value) if plain else [None]
        else:
            yield None


def _hides(code: _Code) -> bool:
    """Tell whether code may report in a way that its text does not show."""
    called = {id(call.func) for call in code.calls()}
    for node in ast.walk(code.tree):
        is_kept = code.names(node) and id(node) not in called
        if is_kept or _runs(node) or _is_told(node) or (_NAME not in code.taken and _binds(node)):
            return True
    return False


def _is_told(node: ast.AST) -> bool:
    """Tell whether a parameter or a text is `report`."""
    match node:
        case ast.arg(arg=text) | ast.Constant(value=text):
            return bool(text == _NAME)
    return False


def _binds(node: ast.AST) -> bool:
    """Tell whether a definition or an import gives the name `report` to something."""
    match node:
        case ast.FunctionDef(name=text) | ast.AsyncFunctionDef(name=text) | ast.ClassDef(name=text):
            return text == _NAME
        case ast.Import(names=names):
            return any(alias.asname == _NAME for alias in names)
        case ast.ImportFrom():
            return _imports_hidden(node)
    return False


def _runs(node: ast.AST) -> bool:
    """Tell whether code runs other code that cannot be seen."""
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


def _reports_by_itself(package: str) -> bool:
    """Tell whether a loaded package uses this one."""
    if package in {_PACKAGE, "__main__"} or package in sys.stdlib_module_names:
        return False
    own = sys.modules.get(_PACKAGE)
    for name, module in list(sys.modules.items()):
        if name == package or name.startswith(f"{package}."):
            for value in list(getattr(module, "__dict__", {}).values()):
                if value is own or looking.attribute(value, "__module__") == _API:
                    return True
    return False
