"""Floor 4, the places a trial can run; each is found by its entry point, the built-in ones too."""

from __future__ import annotations

from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points

from jupyter_autotrain.core.backend import Backend
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.errors import AutotrainError, BackendError

GROUP = "jupyter_autotrain.backends"


def _entries() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=GROUP)}


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
