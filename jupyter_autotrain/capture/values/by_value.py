"""The pickling of the notebook's classes and functions by value: as they are, and without running anything.

cloudpickle makes a class by calling its metaclass, which runs the hooks that ran when the notebook made it. A registry
would then hold its classes twice. The functions below run in the trial, where this package may be missing, so that
their code travels with the pickle.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from types import FunctionType, GetSetDescriptorType, MemberDescriptorType
from typing import Any, is_typeddict

from cloudpickle import cloudpickle

from jupyter_autotrain.capture.values.arrays import ReducedValue

_SLOTS = (GetSetDescriptorType, MemberDescriptorType)


def class_reduced(cls: type, reduced: tuple[Any, ...], home: str) -> tuple[object, ...]:
    """Return the form that makes a class again without its hooks, with all attributes of its own.

    Args:
        cls: The class.
        reduced: What cloudpickle would do.
        home: The module that the notebook's definitions are in.
    """
    if issubclass(cls, Enum) or cls.__module__ != home or is_typeddict(cls):
        return reduced
    generic = vars(cls).get("__pydantic_generic_metadata__") or {}
    if generic.get("origin"):  # a model with its parameters filled in
        return operator.getitem, (generic["origin"], generic["args"])
    own = dict(vars(cls))
    state, slots = reduced[2]
    full = {name: value for name, value in own.items() if not isinstance(value, _SLOTS)}
    if "_abc_impl" in own:
        full["_abc_impl"] = state["_abc_impl"]
    _, name, _, kwargs, tracker, _ = cloudpickle._class_getnewargs(cls)  # noqa: SLF001 - it has no public name
    kwargs = {**kwargs, "__qualname__": cls.__qualname__}
    kwargs |= {name: own[name] for name in ("__slots__", "__orig_bases__") if name in own}
    arguments = (type(cls), _maker(type(cls), home), name, cls.__bases__, kwargs, tracker)
    return make_class, arguments, (full, slots), *reduced[3:]


def _maker(meta: type, home: str) -> type:
    """Return the first metaclass that makes classes and is not the notebook's."""
    return next(base for base in meta.__mro__ if base.__module__ != home and "__new__" in vars(base))


def make_class(
    meta: type, maker: type, name: str, bases: tuple[type, ...], members: dict[str, object], tracker: str
) -> type:
    """Make an empty class, passing by the hooks of the notebook's own bases and metaclasses."""
    hook = "__init_subclass__"
    home = {"__main__", members.get("__module__")}
    above = {base for parent in bases for base in parent.__mro__ if base.__module__ in home}
    saved = {base: vars(base)[hook] for base in above if hook in vars(base)}
    for base in saved:
        type.__delattr__(base, hook)
    try:
        made: type = maker.__new__(meta, name, bases, dict(members))
    finally:
        for base, method in saved.items():
            type.__setattr__(base, hook, method)
    return cloudpickle._lookup_class_or_track(tracker, made)  # type: ignore[no-any-return]  # noqa: SLF001 - as above


def function_reduced(value: object, home: str) -> ReducedValue:
    """Return the form that makes a caching or dispatching function again.

    It is None for any other function, and for one that is not the notebook's.
    """
    if getattr(value, "__module__", None) != home:
        return None
    if isinstance(value, functools._lru_cache_wrapper):  # noqa: SLF001 - it has no public name
        limits = value.cache_parameters()
        attributes = {k: v for k, v in vars(value).items() if k != "cache_parameters"}
        return make_cached, (value.__wrapped__, limits["maxsize"], limits["typed"]), attributes
    if isinstance(value, FunctionType) and value.__globals__ is vars(functools) and hasattr(value, "registry"):
        registry = dict(value.registry)
        return functools.singledispatch, (registry.pop(object),), [*registry.items()], None, None, register_all
    return None


def has_cached(value: object) -> bool:
    """Tell whether a function remembers results of earlier calls."""
    return type(value) is CACHED and value.cache_info().currsize > 0


def cached_in(path: str, value: object) -> Iterator[str]:
    """Yield the functions among a definition and its attributes that remember earlier results."""
    if has_cached(value):
        yield path
    for name, part in vars(value).items() if isinstance(value, type) else ():
        if has_cached(part):
            yield f"{path}.{name}"


def make_cached(function: Callable[..., object], size: int | None, typed: bool) -> object:
    """Return a function with an empty cache."""
    return functools.lru_cache(size, typed)(function)


def register_all(dispatcher: object, registered: Sequence[tuple[type, object]]) -> None:
    """Give a dispatching function its implementations again."""
    for kind, function in registered:
        dispatcher.register(kind, function)  # type: ignore[attr-defined]  # what functools.singledispatch gives


CACHED = functools._lru_cache_wrapper  # noqa: SLF001 - it has no public name
"""The type of functions with a cache."""
TRAVELS = (make_class, make_cached, register_all)
"""Functions whose code travels with the pickle."""
