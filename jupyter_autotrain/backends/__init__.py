"""The places a trial can run; each is found by its entry point, the built-in ones too."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import suppress
from difflib import get_close_matches
from functools import lru_cache
from importlib.metadata import EntryPoint, MetadataPathFinder, entry_points
from pathlib import Path

from jupyter_autotrain.core.backend import Backend
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.errors import AutotrainError, BackendError

GROUP = "jupyter_autotrain.backends"


def _entries() -> Mapping[str, EntryPoint]:
    return _scan(tuple((folder, _changed_ns(folder)) for folder in sys.path))


@lru_cache(maxsize=1)
def _scan(_folders: tuple[tuple[str, int], ...]) -> Mapping[str, EntryPoint]:
    # Reading what every installed package offers takes 5 ms, a third of a submit; so it is done when a folder changed.
    return {entry.name: entry for entry in entry_points(group=GROUP)}


def _forget() -> None:
    """Let the next call look again: without a free descriptor, less is found than there is, and remembered."""
    _scan.cache_clear()
    MetadataPathFinder().invalidate_caches()


def _changed_ns(folder: str) -> int:
    with suppress(OSError):
        return Path(folder).stat().st_mtime_ns
    return 0


def names() -> list[str]:
    """The places known here, in alphabetical order."""
    return sorted(_entries())


def create(name: str, home: Home) -> Backend:
    """Make the place with this name.

    Raises:
        BackendError: When no place has that name, or its plugin cannot be loaded.
    """
    entries = _entries()
    if name not in entries:
        _forget()
        near = get_close_matches(name, entries, n=1)
        hint = f"Did you mean {near[0]!r}? " if near else ""
        raise BackendError(
            f"There is no backend {name!r}.",
            f"{hint}Backends here: {', '.join(sorted(entries))}.",
            "Change `backend:` in the header, or install the package that brings it.",
        )
    try:
        backend: Backend = entries[name].load()(home)
    except AutotrainError:
        raise
    except Exception as error:
        raise BackendError(
            f"The backend {name!r} cannot be loaded: {error}",
            "",
            f"Reinstall the package that brings it ({entries[name].value}).",
        ) from error
    return backend
