"""What of the notebook's own sits on modules and classes of libraries now: functions, and mocks that were started.

The libraries are looked through, not the code that changed them, so that it does not matter who put something there,
and how. Not seen this way is what is no function of the notebook: plain values, of which the cells' text is read
instead (see `effects`), and what C code, a container or an instance of a library keeps.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping
from types import FunctionType, ModuleType

from jupyter_autotrain.capture.state.paths import path_of_value, top
from jupyter_autotrain.capture.state.uses import UsedLibraries
from jupyter_autotrain.capture.syntax.codes import own_globals

_NO_LIBRARIES = ("__main__", "__mp_main__", "IPython", "ipykernel", "jupyter_autotrain", "unittest.mock")


def find(uses: UsedLibraries, namespace: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """The full name of each such attribute, and its value.

    Args:
        uses: What the trial uses.
        namespace: The notebook's globals.
    """
    yield from ((path, value) for path, value in _mocked() if path in uses)
    own = own_globals(namespace)
    seen = set[int]()
    for name, module in list(sys.modules.items()):
        if type(module) is ModuleType and not name.startswith(_NO_LIBRARIES) and _is_used(name, uses):
            yield from _put_on(name, vars(module), own, seen)


def _is_used(module: str, uses: UsedLibraries) -> bool:
    return module == "builtins" or uses.reaches(top(module))


def _put_on(
    owner: str, attributes: Mapping[str, object], own: Collection[int], seen: set[int]
) -> Iterator[tuple[str, object]]:
    """What was put on a module, and on the classes in it that have not been looked at."""
    for name, value in list(attributes.items()):
        if _is_put_here(value, own):
            yield f"{owner}.{name}", value
        elif issubclass(type(value), type) and id(value) not in seen:
            seen.add(id(value))
            members = list(vars(value).items())
            yield from ((f"{owner}.{name}.{k}", v) for k, v in members if _is_put_here(v, own))


def _is_put_here(value: object, own: Collection[int]) -> bool:
    kind = type(value)
    if kind is property:
        value = value.fget  # type: ignore[attr-defined]  # it has one
    elif kind is classmethod or kind is staticmethod:
        value = value.__func__  # type: ignore[attr-defined]  # both have it
    return type(value) is FunctionType and id(value.__globals__) in own


def _mocked() -> Iterator[tuple[str, object]]:
    """What `unittest.mock` replaces until it is told to stop."""
    mock = sys.modules.get("unittest.mock")
    for patch in mock._patch._active_patches if mock else ():  # noqa: SLF001 - there is no public way to ask
        if owner := path_of_value(getattr(patch, "target", None)):
            yield f"{owner}.{patch.attribute}", getattr(patch.target, patch.attribute, None)
