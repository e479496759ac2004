"""What an object or a function of a module beside the notebook keeps inside, where no name shows that it changed.

Generators of random numbers, counters, queues, what a closure has counted, and defaults that calls have filled.
"""

from __future__ import annotations

import ast
import dis
import random
import sys
from collections import deque
from collections.abc import Iterator
from itertools import count
from types import FunctionType

from jupyter_autotrain.capture import looking
from jupyter_autotrain.capture.state.statements import CHANGES_A_PART
from jupyter_autotrain.capture.syntax.codes import cell_content
from jupyter_autotrain.capture.syntax.history import is_literal
from jupyter_autotrain.capture.syntax.scopes import Function

_MAKE = frozenset({"__init__", "__post_init__", "__new__", "__setattr__", "__delattr__", "__setstate__"})
_STORES = frozenset({"STORE_ATTR", "STORE_SUBSCR"})


def of_object(value: object, *, is_filled: bool = False) -> tuple[object, str] | None:
    """Return what an object keeps, and how it gets that again; None for an object of another class.

    Args:
        value: The object, of which the import makes another.
        is_filled: Whether functions of the file write into it: arrays and tensors are often constants.
    """
    kind = type(value)
    if isinstance(value, random.Random):
        return value.getstate(), "{p}.setstate({v})"
    if isinstance(value, deque):
        return [*value], "{p}.clear()\n{p}.extend({v})"
    if kind is count:
        return _of_count(value)
    name = f"{looking.module_of(kind)}.{kind.__name__}"
    if is_filled and name in {"numpy.ndarray", "torch.Tensor"}:
        return value, "{p}[...] = {v}"
    return _of_library(value, name) or _of_torch(value)


def _of_count(value: object) -> tuple[object, str]:
    """Return the same of an `itertools.count`, which is pickled no more from Python 3.14 on."""
    try:
        arguments = ast.literal_eval(f"({repr(value).removeprefix('count(').removesuffix(')')},)")
    except (ValueError, SyntaxError):  # it counts in fractions or the like
        return value, "{p} = {v}"
    return arguments, '{p} = __import__("itertools").count(*{v})'


def _of_library(value: object, name: str) -> tuple[object, str] | None:
    if name == "numpy.random._generator.Generator":
        return looking.attribute(looking.attribute(value, "bit_generator"), "state"), "{p}.bit_generator.state = {v}"
    if name == "numpy.random.mtrand.RandomState":
        return value.get_state(), "{p}.set_state({v})"  # type: ignore[attr-defined]  # it has it
    if name == "torch._C.Generator":
        return value.get_state(), "{p}.set_state({v})"  # type: ignore[attr-defined]  # it has it
    return None


def _of_torch(value: object) -> tuple[object, str] | None:
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(value, torch.optim.Optimizer | torch.nn.Module):
        return None
    try:
        state = value.state_dict()
    except Exception:  # noqa: BLE001 - the module is the user's, and so is its code
        return value, "{p} = {v}"
    if isinstance(value, torch.nn.Module):
        return (state, value.training), "{p}.load_state_dict({v}[0])\n{p}.train({v}[1])"
    return state, "{p}.load_state_dict({v})"


def is_changed_by_use(value: object) -> bool:
    """Whether the methods of an object change it after it was made, or what it holds is changed by use."""
    held = looking.own_attributes(value).values()
    methods = [one for cls in type(value).__mro__ for name, one in vars(cls).items() if name not in _MAKE]
    return any(map(of_object, held)) or any(map(_changes_its_own, methods))


def _changes_its_own(method: object) -> bool:
    """Whether a method sets an attribute of an object, or reaches for a container's method that changes it."""
    if not isinstance(method, FunctionType):
        return False
    found = [one for one in dis.get_instructions(method) if one.opname in _STORES or one.argval in CHANGES_A_PART]
    return bool(found)


def of_function(value: object, node: ast.stmt | None) -> Iterator[tuple[str, object]]:
    """Yield what calls have changed of a function: how to reach it, and its value.

    Args:
        value: The function.
        node: Its statement at the top of the file, if it has one.
    """
    if not isinstance(value, FunctionType):
        return
    cells = dict(zip(value.__code__.co_freevars, value.__closure__ or (), strict=True))
    bound = {one.argval for one in dis.get_instructions(value) if one.opname == "STORE_DEREF"}
    for index, (name, cell) in enumerate(cells.items()):
        if name in bound:
            yield f"__closure__[{index}].cell_contents", cell_content(cell)
    if isinstance(node, Function) and not node.decorator_list:
        written = [ast.literal_eval(one) if is_literal(one) else one for one in node.args.defaults]
        now = [*(value.__defaults__ or ())]
        if any(_is_other(one, other) for one, other in zip(written, now, strict=False)):
            yield "__defaults__", value.__defaults__


def _is_other(written: object, now: object) -> bool:
    return not isinstance(written, ast.expr) and (type(written) is not type(now) or written != now)
