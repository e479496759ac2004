"""Capture of a function, for `submit(fn)` in scripts and notebooks."""

from __future__ import annotations

import ast
import inspect
import linecache
import textwrap
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TypedDict, Unpack

from jupyter_autotrain.capture.capturing import capture
from jupyter_autotrain.capture.looking import refused_by_name
from jupyter_autotrain.capture.refusals import CaptureLimits
from jupyter_autotrain.capture.result import Capture
from jupyter_autotrain.capture.syntax.cells import Cell
from jupyter_autotrain.capture.syntax.nodes import root_name
from jupyter_autotrain.errors import CaptureError

_PACKAGE = "jupyter_autotrain"
_PARAMS = "__autotrain_params__"  # whatever the function's own file calls `params`


class CaptureOptions(TypedDict, total=False):
    """The keywords of `capture` that it takes as they are."""

    ship: Sequence[str]
    limits: CaptureLimits
    not_secrets: Collection[str]
    returns: Collection[str]
    seed: int | None
    trials: int
    variables: Collection[str]
    data: Mapping[str, str]
    setup: Collection[int]


@refused_by_name("")
def from_function(
    function: Callable[..., object],
    cells: Sequence[Cell] = (),
    *,
    cwd: Path,
    parameters: Collection[str] = (),
    **options: Unpack[CaptureOptions],
) -> Capture:
    """Capture a call of a function: its source, what it uses of its globals and of the functions around it.

    Parameters called like a searched name get its value; one other parameter may get all `params`.
    The call's value is bound to `result`.

    Args:
        function: The function.
        cells: The notebook's executed cells; none in a script, where names come from is then read from its own file.
        cwd: The folder that files travel from.
        parameters: Names of the search space.
        options: As in `capture`.

    Raises:
        CaptureError: The function has no source, or parameters that nothing fills, or see `capture`.
        ShipError: See `capture`.
    """
    function = inspect.unwrap(function)
    text, line = _source(function)
    namespace = {**getattr(function, "__globals__", {}), **_around(function)}
    path = inspect.getsourcefile(function) or ""
    label = next((cell.label for cell in cells if text.strip() in cell.source), Path(path).name)
    code = f"{text.rstrip()}\n\n{_call(function, parameters)}\n"
    return capture(
        code, namespace, cells or _file_as_cell(path), cwd=cwd, parameters=parameters, first_line=line, label=label,
        **options,
    )  # fmt: skip


def _source(function: Callable[..., object]) -> tuple[str, int]:
    """Return the function's own text, without decorators of this package, and its first line."""
    try:
        lines, first = inspect.getsourcelines(function)
        text = textwrap.dedent("".join(lines))
        node = ast.parse(text).body[0]
    except (OSError, TypeError, SyntaxError):
        node = None
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.name != function.__name__:
        raise CaptureError(
            f"{getattr(function, '__qualname__', function)!r} has no source that can travel.",
            "A function written with `def`, in a file or a notebook cell.",
            "Write it with `def`, or pass the code as text.",
        )
    scope = getattr(function, "__globals__", {})
    start = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    while node.decorator_list and _is_ours(node.decorator_list[0], scope):
        node.decorator_list.pop(0)
        start = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return "\n".join(text.split("\n")[start - 1 :]), first + start - 1


def _is_ours(decorator: ast.expr, scope: Mapping[str, object]) -> bool:
    value = scope.get(root_name(decorator))
    home = getattr(value, "__module__", None) or getattr(value, "__name__", "")
    return str(home).partition(".")[0] == _PACKAGE


def _around(function: Callable[..., object]) -> dict[str, object]:
    """Return the values that the functions around a function gave it."""
    names = getattr(getattr(function, "__code__", None), "co_freevars", ())
    found: dict[str, object] = {}
    for name, cell in zip(names, getattr(function, "__closure__", None) or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:
            continue  # not bound yet, as when a function refers to itself
    return found


def _call(function: Callable[..., object], parameters: Collection[str]) -> str:
    keywords = list[str]()
    others = list[inspect.Parameter]()
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}:
            continue
        if parameter.name in parameters and parameter.kind is not parameter.POSITIONAL_ONLY:
            keywords.append(f'{parameter.name}={_PARAMS}["{parameter.name}"]')
        elif parameter.default is parameter.empty:
            others.append(parameter)
    if len(others) > 1:
        raise CaptureError(
            f"{function.__name__} has parameters that nothing fills: {', '.join(p.name for p in others)}.",
            "Names of the search space are filled; one other parameter gets `params`.",
            f"Give them defaults, or take one parameter: def {function.__name__}(params).",
        )
    first = [_PARAMS if p.kind is p.POSITIONAL_ONLY else f"{p.name}={_PARAMS}" for p in others]
    waits = "await " if inspect.iscoroutinefunction(function) else ""
    return f"result = {waits}{function.__name__}({', '.join(first + keywords)})"


def _file_as_cell(path: str) -> list[Cell]:
    text = "".join(linecache.getlines(path)) if path else ""
    return [Cell(1, text, name=Path(path).name)] if text else []
