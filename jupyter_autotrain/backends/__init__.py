"""The backends: where trials run. Their types are found by entry points, the built-in ones too.

A *profile* names a backend: its type and options. Files define profiles (`header.profiles`), and each type has one of
its own name, without options.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from importlib.metadata import EntryPoint, MetadataPathFinder, entry_points
from pathlib import Path
from typing import TYPE_CHECKING

from jupyter_autotrain.core.backend import Backend, BackendContext, BackendType
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.text_format import closest_match
from jupyter_autotrain.errors import AutotrainError, BackendError

if TYPE_CHECKING:
    from pydantic import BaseModel

    from jupyter_autotrain.header import Header, HeaderContext

GROUP = "jupyter_autotrain.backends"
OPTIONS_GROUP = "jupyter_autotrain.backends.options"
"""Names the model of a type's options too: so a header is read without importing the backend. Not required."""


def _entries(group: str = GROUP) -> Mapping[str, EntryPoint]:
    return _scan(tuple((folder, _changed_ns(folder)) for folder in sys.path))[group]


@lru_cache(maxsize=1)
def _scan(_folders: tuple[tuple[str, int], ...]) -> Mapping[str, Mapping[str, EntryPoint]]:
    # Reading what every installed package offers takes 5 ms, a third of a submit; so it is done when a folder changed.
    every = entry_points()
    return {group: _named(every.select(group=group)) for group in (GROUP, OPTIONS_GROUP)}


def _named(entries: Iterable[EntryPoint]) -> Mapping[str, EntryPoint]:
    return {entry.name: entry for entry in entries}


def _forget() -> None:
    """Forget the types found, so that the next call looks again.

    Without a free file descriptor, fewer types are found than there are, and that would be remembered.
    """
    _scan.cache_clear()
    MetadataPathFinder().invalidate_caches()


def _changed_ns(folder: str) -> int:
    with suppress(OSError):
        return Path(folder).stat().st_mtime_ns
    return 0


def type_names() -> list[str]:
    """Return the names of all types, in alphabetical order."""
    return sorted(_entries())


def create(profile: Profile, context: BackendContext, *, is_checked: bool = False) -> Backend:
    """Make the backend of a profile.

    Args:
        profile: Its name, type and options.
        context: The home.
        is_checked: Whether the model of its options has passed them, as of every experiment in a store.

    Raises:
        BackendError: When its type is not known or cannot be loaded, or its options do not fit.
    """
    made = _load(profile.type)
    if profile.options and not is_checked:
        _check_options(profile, made.options_model())
    try:
        return made(profile, context)
    except AutotrainError:
        raise
    except Exception as error:
        raise _broken(profile.type, error) from error


def options_model(type_name: str) -> type[BaseModel]:
    """Return the pydantic model of a type's options, whose `model_json_schema()` is their JSON Schema.

    Raises:
        BackendError: When the type is not known or cannot be loaded.
    """
    return _options_model(type_name, _entries(OPTIONS_GROUP))


def _options_model(type_name: str, entries: Mapping[str, EntryPoint]) -> type[BaseModel]:
    entry = entries.get(type_name)
    try:
        model: type[BaseModel] = entry.load() if entry else _load(type_name).options_model()
    except BackendError:
        raise
    except Exception as error:
        raise _broken(type_name, error) from error
    return model


def options_models() -> dict[str, type[BaseModel]]:
    """Return the model of each type's options, without the types that cannot be loaded.

    `create` says why one of those cannot be loaded.
    """
    found = {}
    entries = _entries(OPTIONS_GROUP)  # once: each look asks whether folders have changed
    for name in type_names():
        with suppress(BackendError):
            found[name] = _options_model(name, entries)
    return found


def header_schema() -> type[Header]:
    """Return the schema of a header, with the options of each type."""
    from jupyter_autotrain import header  # noqa: PLC0415 - heavy, and the manager has no use for it

    return header.with_backend_types(tuple(options_models().items()))


def header_context(cwd: Path, environ: Mapping[str, str]) -> HeaderContext:
    """Return the facts of this machine that reading a header needs.

    Args:
        cwd: The folder of the notebook.
        environ: The environment.
    """
    from jupyter_autotrain import header  # noqa: PLC0415 - heavy, and the manager has no use for it

    return header.HeaderContext(cwd, environ, type_names(), header_schema())


def _load(type_name: str) -> BackendType:
    entries = _entries()
    if type_name not in entries:
        raise _unknown(type_name)
    try:
        made: BackendType = entries[type_name].load()
    except Exception as error:
        raise _broken(type_name, error) from error
    return made


def _unknown(name: str) -> BackendError:
    known = type_names()
    _forget()
    near = closest_match(name, known)
    hint = f"Did you mean {near!r}? " if near else ""
    return BackendError(
        f"There is no backend {name!r}.",
        f"{hint}Backends here: {', '.join(known)}.",
        "Change `backend:` in the header, or install the package that brings it.",
    )


def _broken(type_name: str, error: Exception) -> BackendError:
    return BackendError(
        f"The backend {type_name!r} cannot be loaded: {error}",
        "",
        f"Reinstall the package that brings it ({_entries()[type_name].value}).",
    )


def _check_options(profile: Profile, model: type[BaseModel]) -> None:
    from pydantic import ValidationError  # noqa: PLC0415 - the manager needs it only for a profile with options

    try:
        model.model_validate(profile.options)
    except ValidationError as error:
        faults = [f"{_dotted(fault['loc'])}: {fault['msg']}" for fault in error.errors(include_url=False)]
        raise BackendError(
            f"The options of the backend {profile.name!r} do not fit: {'; '.join(faults)}.",
            f"Options of its type {profile.type!r}: {', '.join(model.model_fields) or 'none'}.",
            "Change them in its profile.",
        ) from None


def _dotted(path: Sequence[str | int]) -> str:
    return ".".join(map(str, path))
