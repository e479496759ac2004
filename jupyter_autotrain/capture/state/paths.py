"""Full names of what code reaches from its imports: `np.random.seed` is `numpy.random.seed`."""

from __future__ import annotations

import ast
import sys
import types
from collections.abc import Mapping

from jupyter_autotrain.capture import looking


def path_of(expression: ast.expr, aliases: Mapping[str, str]) -> str:
    """The full name of an expression; "" for one that does not begin with an imported name.

    Calls and items in it are kept: `logging.getLogger().setLevel`, `conf.TABLE['lr']`.

    Args:
        expression: The expression.
        aliases: The full name of each imported name.
    """
    if isinstance(expression, ast.Name):
        return aliases.get(expression.id, "")
    if isinstance(expression, ast.Attribute):
        owner = path_of(expression.value, aliases)
        return f"{owner}.{expression.attr}" if owner else ""
    if isinstance(expression, ast.Subscript):
        owner = path_of(expression.value, aliases)
        return f"{owner}[{ast.unparse(expression.slice)}]" if owner else ""
    if isinstance(expression, ast.Call):
        function = path_of(expression.func, aliases)
        return f"{function}()" if function else ""
    return ""


def path_of_value(value: object) -> str:
    """The full name of a module, or of a function or class of one; "" for all else, and for the notebook's own."""
    if looking.is_kind(value, types.ModuleType):
        return str(looking.attribute(value, "__name__", ""))
    if not looking.is_kind(value, (type, types.FunctionType, types.BuiltinFunctionType)):
        return ""
    assert isinstance(value, type | types.FunctionType | types.BuiltinFunctionType)
    module = str(value.__module__)
    known = module not in {"__main__", "builtins"} and module in sys.modules
    return f"{module}.{value.__qualname__}" if known else ""


def top(path: str) -> str:
    """The package that a full name begins with."""
    return path.partition(".")[0]


def text_of(path: str) -> str:
    """An expression for what a full name means, whatever the script's names mean; it imports the module."""
    parts = path.split(".")
    lengths = [n for n in range(len(parts), 0, -1) if ".".join(parts[:n]) in sys.modules]
    module = ".".join(parts[: lengths[0] if lengths else 1])
    return import_text(module) + path[len(module) :]


def import_text(module: str) -> str:
    """An expression that is a module, whatever the script's names mean; it imports the module."""
    _, _, inner = module.partition(".")
    return f'__import__("{module}"){f".{inner}" if inner else ""}'
