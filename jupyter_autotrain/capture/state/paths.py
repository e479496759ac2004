"""Full names of what code reaches from its imports, and values that can be written out in the script.

`np.random.seed` is `numpy.random.seed`.
"""

from __future__ import annotations

import ast
import sys
import types
from collections.abc import Mapping

from jupyter_autotrain.capture import looking


def path_of(expression: ast.expr, aliases: Mapping[str, str]) -> str:
    """Return the full name of an expression; "" for one that does not begin with an imported name.

    Calls and items in it are kept: `logging.getLogger().setLevel`, `conf.TABLE['lr']`.
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
    """Return the full name of a module, or of a function or class of one.

    It is "" for all else, and for the notebook's own.
    """
    if looking.is_kind(value, types.ModuleType):
        return str(looking.attribute(value, "__name__", ""))
    if not looking.is_kind(value, (type, types.FunctionType, types.BuiltinFunctionType)):
        return ""
    assert isinstance(value, type | types.FunctionType | types.BuiltinFunctionType)
    module = str(value.__module__)
    known = module not in {"__main__", "builtins"} and module in sys.modules
    return f"{module}.{value.__qualname__}" if known else ""


def top(path: str) -> str:
    """Return the package that a full name begins with."""
    return path.partition(".")[0]


def import_text(module: str) -> str:
    """Return an expression that is a module, whatever the script's names mean.

    The expression imports the module.
    """
    _, _, inner = module.partition(".")
    return f'__import__("{module}"){f".{inner}" if inner else ""}'


# Values that can be written out in the script


_LONGEST = 2_000


def is_literal_value(value: object) -> bool:
    """Tell whether a value is plain and short: its `repr`, read again, is the same."""
    try:
        text = repr(value)
        return len(text) <= _LONGEST and bool(ast.literal_eval(text) == value)
    except Exception:  # noqa: BLE001 - the value is the user's, and so is its code
        return False


def arguments(values: Mapping[str, object]) -> str:
    """Return keyword arguments as code."""
    return ", ".join(f"{name}={value!r}" for name, value in values.items())
