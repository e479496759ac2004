"""Files of settings, and the files that settings name: read again only when changed, with paths and digests.

The files of a project that its settings name, and those that such files name in turn, with their digests. A
kubeconfig or an ssh_config in the same folder can run programs just as the project's file itself, and so can a script
that one of them names.

Relative paths of files here that settings name: they refer to the folder of the file that they stand in. A cell is a
file beside its notebook. `ship:` alone is a set of patterns for what lies beside each notebook, wherever it stands:
its files keep their places. Paths in profiles are read by `types.LocalPath`, the folder of a hook's command is the
user's home.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

from jupyter_autotrain.header.document import LIMIT_BYTES, Document, Fault, KeyPath, SourceLocation
from jupyter_autotrain.header.yaml_reader import load

_MOST_FILES: Final = 200
_MOST_SEARCHED_BYTES: Final = 64_000  # of a file, for names of others: longer ones are no files of settings
_MOST_HASHED_BYTES: Final = 256_000_000  # of a longer one its size and its last change count
_BETWEEN_WORDS: Final = re.compile(r"[\s\"'`;:,=()<>|&{}\[\]]+")


def of_settings(project: Path, settings: Mapping[str, object]) -> list[Path]:
    """Return the files in a project's folder that settings name, directly or by one another, links followed.

    Args:
        project: The project's file, to whose folder names refer.
        settings: What stands in it.

    Raises:
        OSError: They are too many.
    """
    found: dict[Path, None] = {}
    todo = [(project.parent, set(_texts(settings)))]
    while todo:
        folder, texts = todo.pop()
        for file in _inside(project.parent, folder, texts):
            if file not in found:
                found[file] = None
                todo.append((file.parent, set(_names_in(file))))
        if len(found) > _MOST_FILES:
            raise OSError(None, f"it names more than {_MOST_FILES} files")
    return sorted(found)


def digest_of(file: Path) -> bytes:
    """Return the digest of a file's content; it is read again when the file has changed.

    Raises:
        OSError: It cannot be read.
    """
    state = file.stat()
    return _digest(file, state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino)


@lru_cache(maxsize=256)
def _digest(file: Path, size_bytes: int, changed_ns: int, *_state: int) -> bytes:
    if size_bytes > _MOST_HASHED_BYTES:
        return f"{size_bytes} {changed_ns}".encode()
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").digest()


def _texts(value: object) -> Iterator[str]:
    """Yield each text of settings, numbers as they are written too, whole and by words, as in a line of shell."""
    if isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, str):
        yield value
        yield from _BETWEEN_WORDS.split(value)


def _names_in(file: Path) -> list[str]:
    try:
        with file.open("rb") as content:
            text = content.read(_MOST_SEARCHED_BYTES + 1)
    except OSError:
        return []
    return _BETWEEN_WORDS.split(text.decode("utf-8", "replace")) if len(text) <= _MOST_SEARCHED_BYTES else []


def _inside(project: Path, folder: Path, names: Iterable[str]) -> Iterator[Path]:
    root = project.resolve()
    for name in sorted(names):
        try:
            target = (folder / name).resolve()
            if name and target.is_relative_to(root) and target.is_file():
                yield target
        except (OSError, ValueError, RuntimeError):
            continue  # no name of a file


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
    """Return what a file elsewhere names; what is named beside the notebook stays as it is written."""
    folder = settings.location(path).folder
    is_elsewhere = folder is not None and folder.resolve() != cwd.resolve()
    return _absolute(value, folder) if is_elsewhere and folder is not None and isinstance(value, str) else value


def _absolute(value: str, folder: Path) -> str:
    return value if value.startswith("~") else str(folder.resolve() / value)


def existing(path: Path) -> Path | None:
    """Return the path, if a file is there."""
    try:
        return path if path.is_file() else None
    except OSError:
        return None


def read_file(path: Path, source: str, requested_at: SourceLocation = SourceLocation()) -> Document:  # noqa: B008 - frozen
    """Return settings of a file; what is wrong with it is a fault, at `requested_at` when it cannot be read."""
    try:
        state = path.stat()
        found = _read_cached(path, source, state.st_mtime_ns, state.st_size, state.st_ino)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        unread = f"{source} cannot be read: {reason}"
        return Document(faults=[Fault(unread, "expected a YAML file", "check its path", requested_at)])
    return Document(dict(found.data), dict(found.locations), list(found.faults))


@lru_cache(maxsize=8)
def _read_cached(path: Path, source: str, *_changed: int) -> Document:
    """Return a file's settings, while nothing has changed it: YAML is slow, and a submit reads three files."""
    lines: list[tuple[int, str]] = []
    for number, row in enumerate(_text(path).split("\n"), 1):
        lines.append((number, "" if row.rstrip() == "---" else row.rstrip("\r")))
    return load(lines, source, path.parent)


def _text(path: Path) -> str:
    """Return the text of a file; never more than a header may have, and nothing that is no file, such as a pipe."""
    if not path.is_file():
        raise OSError(None, "not a regular file")
    with path.open("rb") as file:
        data = file.read(LIMIT_BYTES + 1)
    return data.decode("utf-8-sig", errors="replace" if len(data) > LIMIT_BYTES else "strict")
