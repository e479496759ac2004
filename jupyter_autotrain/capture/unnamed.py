"""Definitions that a trial needs although no code names them: subclasses that are listed, and what pickles name."""

from __future__ import annotations

import contextlib
import mmap
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from jupyter_autotrain.capture.definitions import sources
from jupyter_autotrain.capture.slice import Slice

_LISTS = "__subclasses__"
_UNPICKLES = re.compile(r"\b(?:load\w*|read_pickle|Unpickler)\(")


def subclasses(code: str, slice_: Slice) -> set[str]:
    """Return the notebook's subclasses of captured classes, where captured code lists the subclasses of a class."""
    items = [item for item in slice_.items.values() if item.how == "source"]
    texts = [code, *(item.text for item in items)]
    if not any(_LISTS in text for text in texts):
        return set()
    values = (slice_.namespace.get(item.name) for item in items)
    known = [one for value in values if isinstance(value, type) for one in _subclasses(value)]
    found = {slice_.name_of(one).partition(".")[0] for one in known}
    return found - {"", *slice_.items}


def _subclasses(cls: type) -> list[type]:
    return type.__subclasses__(cls)


def in_pickles(script: str, files: Iterable[Path], slice_: Slice) -> set[str]:
    """Return the notebook's definitions that files and bytes of a trial name, where its code reads pickles.

    A pickle names a class by its module and its name. Whatever holds both texts is taken for one.

    Args:
        script: The code.
        files: The files.
        slice_: The captured names; those are left out.
    """
    if not _UNPICKLES.search(script):
        return set()
    values = slice_.namespace.items()
    names = {name for name, value in values if sources.is_definition(value, slice_.home)} - set(slice_.items)
    captured = (slice_.namespace.get(name) for name in slice_.values.pickles)
    contents = (value for value in captured if isinstance(value, bytes | bytearray))
    found = set[str]()
    for content in chain(contents, _contents(files)):
        if content.find(slice_.home.encode()) >= 0:
            found |= {name for name in names if content.find(name.encode()) >= 0}
    return found


def _contents(files: Iterable[Path]) -> Iterator[mmap.mmap]:
    for path in files:
        with (
            contextlib.suppress(OSError, ValueError),  # gone meanwhile, or empty
            path.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
        ):
            yield content
