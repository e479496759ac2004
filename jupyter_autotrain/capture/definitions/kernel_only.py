"""What exists in this kernel only: parts of IPython, modules made in memory, and input typed by the user."""

from __future__ import annotations

import types
from collections.abc import Collection, Iterator

from jupyter_autotrain.capture import looking
from jupyter_autotrain.capture.syntax.codes import code_names

_ASK_A_PERSON = frozenset({"breakpoint", "input"})


def reason(name: str, value: object, *, is_bound: bool) -> str:
    """Why a name that has neither source nor an import cannot travel; "" when it may be data."""
    if not is_bound or name == "get_ipython":
        return "a part of IPython, which trials do not have"
    if looking.is_kind(value, types.ModuleType):
        return "a module that exists only in this kernel's memory"
    if type(value) is types.FunctionType and "get_ipython" in code_names(value.__code__):
        return "a function with IPython's own syntax (% or !): write these lines as plain Python"
    return ""


def waiting_for_input(called: Collection[str], bound: Collection[str]) -> Iterator[tuple[str, str]]:
    """The builtins among the called names that wait for input, and why a trial cannot call them."""
    for name in sorted(_ASK_A_PERSON.intersection(called).difference(bound)):
        yield name, "it waits for input, and a trial has no user"
