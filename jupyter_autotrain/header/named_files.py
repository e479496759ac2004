"""The files of a project that its settings name, and those that such files name in turn, with their digests.

A kubeconfig or an ssh_config in the same folder can run programs just as the project's file itself, and so can a script
that one of them names.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

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
