"""Compiled code: what a statement compiles to, and which code a live object runs."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import CellType, CodeType, FunctionType

from jupyter_autotrain.capture import looking
from jupyter_autotrain.capture.syntax.history import Binding, compiler_flags

_LOOKED_AT_MOST = 300


def compiled(binding: Binding, futures: Sequence[str]) -> list[CodeType]:
    """Return the code of the definition: compiled alone, as in IPython, and with its text around it.

    The two may differ: the compiler treats a method of a name imported in the same text in another way.
    """
    flags = compiler_flags(futures) | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    node = binding.node
    alone = compile(ast.Module([node], type_ignores=[]), "<cell>", "exec", flags=flags, dont_inherit=True)
    whole = compile(binding.text, "<cell>", "exec", flags=flags, dont_inherit=True)
    codes = [code for code in (*alone.co_consts, *whole.co_consts) if isinstance(code, CodeType)]
    return [code for code in codes if binding.first_line <= code.co_firstlineno <= (node.end_lineno or node.lineno)]


def with_nested(codes: Sequence[CodeType]) -> list[CodeType]:
    """Return code objects and all that are nested in them."""
    found = list(codes)
    for code in found:
        found.extend(constant for constant in code.co_consts if isinstance(constant, CodeType))
    return found


def live_codes(value: object, seen: set[int]) -> Iterator[CodeType]:
    """Yield the code of a function, and of those it wraps."""
    if id(value) in seen or len(seen) > 20:
        return
    seen.add(id(value))
    if type(value) is FunctionType:
        yield value.__code__
        for cell in value.__closure__ or ():
            if callable(content := cell_content(cell)):
                yield from live_codes(content, seen)
    for wrapped in (inspect.getattr_static(value, "__wrapped__", None), looking.attribute(value, "__func__")):
        if wrapped is not None:
            yield from live_codes(wrapped, seen)


def functions_in(value: object, namespace: Mapping[str, object]) -> Iterator[FunctionType]:
    """Yield the notebook's functions that an object holds: in closures, attributes and containers."""
    todo = [value]
    seen = set[int]()
    while todo and len(seen) < _LOOKED_AT_MOST:
        item = todo.pop()
        if id(item) in seen or isinstance(item, type):
            continue
        seen.add(id(item))
        if isinstance(item, FunctionType) and has_globals(item, namespace):
            yield item
        todo += _held(item)


def _held(item: object) -> list[object]:
    """Return the objects that an object refers to."""
    if isinstance(item, FunctionType):
        closure = list(map(cell_content, item.__closure__ or ()))
        return [*closure, *vars(item).values()]
    if isinstance(item, property):
        return [item.fget, item.fset, item.fdel]
    functions = [looking.attribute(item, name) for name in ("__func__", "func")]
    held = (one for _, one in looking.items(item))
    return [*functions, *held, *looking.elements(item), *looking.own_attributes(item).values()]


def has_globals(function: FunctionType, namespace: Mapping[str, object]) -> bool:
    """Tell whether a function reads the notebook's globals.

    Those of the module that `namespace` is a copy of count as well.
    """
    return id(function.__globals__) in own_globals(namespace)


def own_globals(namespace: Mapping[str, object]) -> tuple[int, int]:
    """Return two identities: of the notebook's globals, and of those of the module that they are a copy of."""
    module = sys.modules.get(str(namespace.get("__name__")))
    return id(namespace), id(getattr(module, "__dict__", namespace))


def cell_content(cell: CellType) -> object:
    """Return the content of a closure's variable; None for one without a value."""
    try:
        return getattr(cell, "cell_contents", None)
    except ValueError:  # an empty cell
        return None


def same_code(mine: CodeType, theirs: CodeType) -> bool:
    """Tell whether two code objects do the same, wherever they are defined."""
    if (mine.co_code, mine.co_names, mine.co_varnames) != (theirs.co_code, theirs.co_names, theirs.co_varnames):
        return False
    if len(mine.co_consts) != len(theirs.co_consts) or mine.co_argcount != theirs.co_argcount:
        return False
    return all(map(_same_constant, mine.co_consts, theirs.co_consts))


def is_among(code: CodeType, others: Iterable[CodeType]) -> bool:
    """Tell whether one of these codes does the same as the first."""
    return any(same_code(code, other) for other in others)


def _same_constant(mine: object, theirs: object) -> bool:
    if isinstance(mine, CodeType) and isinstance(theirs, CodeType):
        return same_code(mine, theirs)
    return type(mine) is type(theirs) and (mine == theirs or repr(mine) == repr(theirs))


def code_names(code: CodeType) -> set[str]:
    """Return every global name that a compiled function, and the code nested in it, may read."""
    return set[str]().union(*(part.co_names for part in with_nested([code])))
