"""The pickling of instances that would lose something on pickle's own way, or fail when they are made again."""

from __future__ import annotations

import copyreg
import gc
import inspect
import sys
import types
import typing
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import PurePath
from typing import Any

from cloudpickle import cloudpickle

from jupyter_autotrain.capture import looking
from jupyter_autotrain.capture.installed import file_of
from jupyter_autotrain.capture.values import unpicklable
from jupyter_autotrain.capture.values.arrays import ReducedValue
from jupyter_autotrain.capture.values.standins import rebuilding
from jupyter_autotrain.capture.values.unpicklable import UnpicklableError

_FILL = rebuilding("fill")
_PROTOCOL = 5
_OWN_WAYS = ("__getstate__", "__reduce__", "__reduce_ex__")
_COMPARED = (bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset)


def reducer_of(kind: type, home: str) -> Callable[[Any, str], ReducedValue] | None:
    """Return the pickling of a class's instances, given one and `home`.

    It is None where pickle's own way will do.

    Args:
        kind: The class.
        home: The module that the notebook's definitions are in.
    """
    if kind in _BY_TYPE:
        return _BY_TYPE[kind]
    if issubclass(kind, BaseException) and kind.__reduce__ is BaseException.__reduce__:
        return _exception if isinstance(kind.__init__, types.FunctionType) else None
    if _has_own_way(kind, home):
        return _by_itself
    if _defines(kind.__mro__, *_OWN_WAYS, "__setstate__"):
        return None
    if _answers(kind):
        return _filled
    return _filled_where_shared if _is_users(kind, home) else None


def _defines(classes: Iterable[type], *names: str) -> bool:
    """Return whether one of these classes has one of these methods of its own."""
    return any(name in vars(one) for one in classes if one is not object for name in names)


def _has_own_way(kind: type, home: str) -> bool:
    """Return whether the user's own code pickles the instances of a class."""
    return _defines((base for base in kind.__mro__ if _is_users(base, home)), *_OWN_WAYS)


def _is_users(kind: type, home: str) -> bool:
    """Return whether a class is of the notebook, or of a module beside it."""
    module = looking.module_of(kind)
    return module == home or file_of(module) is not None


def _answers(kind: type) -> bool:
    """Return whether code of a class runs when an attribute is read."""
    return _defines(kind.__mro__, "__getattr__") or isinstance(kind.__getattribute__, types.FunctionType)


def left_out(value: object, reduced: tuple[object, ...], home: str) -> list[str]:
    """Return the attributes of an instance that the user's own code does not pickle as they are.

    Args:
        value: The instance.
        reduced: What that code gave.
        home: The module that the notebook's definitions are in.
    """
    if not _has_own_way(type(value), home):
        return []
    _, arguments, *rest = reduced
    state = rest[0] if rest else None
    held = list(_parts([arguments, state]))
    found = [name for name, one in looking.own_attributes(value).items() if not _is_among(one, held)]
    return [name for name in found if unpicklable.reason(looking.own_attributes(value)[name]) != "a lock"]


def _parts(values: Iterable[object], depth: int = 3) -> Iterator[object]:
    """Yield values and what they hold, some levels deep."""
    for value in values:
        yield value
        if depth and isinstance(value, list | tuple | dict):
            yield from _parts(value.values() if isinstance(value, dict) else value, depth - 1)


def _is_among(one: object, others: Iterable[object]) -> bool:
    return any(_same(one, other) for other in others)


def _same(one: object, other: object) -> bool:
    """Return whether two values are the same, or cannot be distinguished."""
    if one is other:
        return True
    try:
        return type(one) is type(other) and isinstance(one, _COMPARED) and bool(one == other)
    except Exception:  # noqa: BLE001 - what they hold is the user's
        return False


# By class


def _exception(error: BaseException, _home: str) -> ReducedValue:
    """Pickle an exception so that its class is not called, which may take other arguments than its base."""
    return copyreg.__newobj__, (type(error), *error.args), vars(error) or None  # type: ignore[attr-defined]  # it is there


def _by_itself(value: object, _home: str) -> ReducedValue:
    """Pickle an instance as the notebook's own code says.

    Raises:
        UnpicklableError: That code says only by which name the instance is known.
    """
    reduced: tuple[Any, ...] | str = value.__reduce_ex__(_PROTOCOL)
    if isinstance(reduced, str):
        raise UnpicklableError(f"it gives only a name of this notebook, {reduced}")
    is_new = reduced[0] is copyreg.__newobj__ and reduced[2] is not None  # type: ignore[attr-defined]  # it is there
    return (*reduced, _FILL) if is_new and not _defines(type(value).__mro__, "__setstate__") else reduced


def _filled_where_shared(value: object, home: str) -> ReducedValue:
    """Pickle an instance; where its `__dict__` is known elsewhere too, with that very dictionary."""
    return None if _holders(value) <= _ALONE else _filled(value, home)


def _filled(value: object, _home: str) -> ReducedValue:
    """Pickle an instance so that it gets its very `__dict__`, by no code of its class, which would run too early."""
    reduced: tuple[Any, ...] = value.__reduce_ex__(_PROTOCOL)  # type: ignore[assignment]  # a class without its own way
    make, arguments, state, *rest = reduced
    attributes = looking.own_attributes(value)
    state = (attributes, state[1]) if isinstance(state, tuple) else attributes  # the very dictionary
    return make, arguments, state, *rest, _FILL


def _holders(value: object) -> int:
    attributes = looking.own_attributes(value)
    return sys.getrefcount(attributes)


class _Alone:
    def __init__(self) -> None:
        self.value = 0


_ALONE = _holders(_Alone())


def _classes(owner: object) -> tuple[type, ...]:
    own = owner.__mro__ if isinstance(owner, type) else ()
    return (*own, *type(owner).__mro__)


def _method(method: types.MethodType, home: str) -> ReducedValue:
    """Return a bound method of a library's class by its name.

    The object must still have it under that name.

    A class of the notebook may itself be in the making when its methods are.
    """
    owner = method.__self__
    name = str(looking.attribute(method.__func__, "__name__", ""))
    holder = next((one for one in _classes(owner) if name in vars(one)), None)
    if holder is None or looking.module_of(holder) == home:
        return None
    module = sys.modules.get(looking.module_of(holder))
    found = inspect.getattr_static(owner, name, None)
    is_its_own = looking.attribute(found, "__func__", found) is method.__func__
    is_importable = looking.attribute(module, holder.__name__) is holder
    return (getattr, (owner, name)) if is_its_own and is_importable else None


def _code(code: types.CodeType, _home: str) -> ReducedValue:
    """Pickle code without the name that a kernel gives its cell: a file of its process, which no two kernels share."""
    if not PurePath(code.co_filename).parent.name.startswith("ipykernel_"):
        return None
    return cloudpickle._code_reduce(code.replace(co_filename="<cell>"))  # type: ignore[no-any-return]  # noqa: SLF001 - it has no public name


def _cell(cell: types.CellType, _home: str) -> ReducedValue:
    """Pickle a closure's cell as an empty one, filled once it exists: a function may well be in its own cell."""
    try:
        state = (None, {"cell_contents": cell.cell_contents})
    except ValueError:  # still empty
        return types.CellType, ()
    return types.CellType, (), state


def _view(make: Callable[..., object]) -> Callable[[object, str], ReducedValue]:
    """Pickle a view of a dictionary, together with that dictionary."""
    return lambda view, _home: (make, tuple(gc.get_referents(view)))


_BY_TYPE: Mapping[type, Callable[[Any, str], ReducedValue]] = {
    types.CellType: _cell,
    types.MethodType: _method,
    types.CodeType: _code,
    types.MappingProxyType: _view(types.MappingProxyType),
    **{
        type(view(made())): _view(view) for made in (dict, OrderedDict) for view in (made.keys, made.values, made.items)
    },
    typing.NewType: lambda made, _home: (typing.NewType, (made.__name__, made.__supertype__)),
    typing.ParamSpec: lambda made, _home: (typing.ParamSpec, (made.__name__,)),
    typing.TypeVarTuple: lambda made, _home: (typing.TypeVarTuple, (made.__name__,)),
}
