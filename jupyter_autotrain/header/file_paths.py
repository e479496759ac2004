"""Relative paths of files here that settings name: they refer to the folder of the file that they stand in.

A cell is a file beside its notebook. `ship:` alone is a set of patterns for what lies beside each notebook, wherever it
stands: its files keep their places. Paths in profiles are read by `types.LocalPath`, the folder of a hook's command is
the user's home.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from jupyter_autotrain.header.document import Document
from jupyter_autotrain.header.faults import KeyPath

_THERE: Final = ("python", "conda")  # names without a slash are found on the place, these are not


def resolved(settings: Document, cwd: Path) -> Document:
    """Make relative paths absolute where nobody else would find them.

    Args:
        settings: Those of one source, in the schema's own spelling.
        cwd: The notebook's folder.
    """
    data = dict(settings.data)
    environment = data.get("environment")
    if isinstance(environment, dict):
        data["environment"] = {key: _of_environment(settings, key, environment[key], cwd) for key in environment}
    entries = data.get("data")
    if isinstance(entries, dict):
        data["data"] = {name: _of_data(settings, name, entries[name], cwd) for name in entries}
    return Document(data, settings.locations, settings.faults)


def _of_environment(settings: Document, key: str, value: object, cwd: Path) -> object:
    path: KeyPath = ("environment", key)
    if key in _THERE and isinstance(value, str) and "/" in value:
        return _absolute(value, settings.location(path).folder or cwd)
    return _from_file(settings, path, value, cwd) if key == "requirements" else value


def _of_data(settings: Document, name: str, value: object, cwd: Path) -> object:
    path: KeyPath = ("data", name)
    if isinstance(value, dict) and "send" in value:
        return {**value, "send": _from_file(settings, path, value["send"], cwd)}
    return _from_file(settings, path, value, cwd)


def _from_file(settings: Document, path: KeyPath, value: object, cwd: Path) -> object:
    """What a file elsewhere names; what is named beside the notebook stays as it is written."""
    folder = settings.location(path).folder
    is_elsewhere = folder is not None and folder.resolve() != cwd.resolve()
    return _absolute(value, folder) if is_elsewhere and folder is not None and isinstance(value, str) else value


def _absolute(value: str, folder: Path) -> str:
    return value if value.startswith("~") else str(folder.resolve() / value)
