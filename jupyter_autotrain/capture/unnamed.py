"""Definitions that a trial needs although no code names them: by a text, by their base, by a pickle."""

from __future__ import annotations

import contextlib
import mmap
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from jupyter_autotrain.capture.definitions import sources
from jupyter_autotrain.capture.slice import Slice

_BYTES = (bytes, bytearray, mmap.mmap)
_LISTS = b"__subclasses__"
_MAIN = re.compile(rb"__main__\.")
_PATH = re.compile(rb"\b__main__\.([A-Za-z_]\w*)", re.ASCII)
_PICKLES = (b"\x80", b"PK")
"""The first bytes of a pickle, and of an archive of torch."""
_READ_BYTES = 64 << 20


def reached(code: str, slice_: Slice) -> set[str]:
    """Return the notebook's definitions that the code or the data of a trial reach, but that are not captured yet.

    Args:
        code: The cell's code.
        slice_: The captured names.
    """
    texts = [item.text.encode() for item in slice_.items.values() if item.how == "source"]
    texts += [code.encode(), *(pickled.content for pickled in slice_.values.pickles.values())]
    names = set[str]()
    for path in _PATH.findall(b"\n".join(filter(_MAIN.search, texts))):
        if sources.is_definition(slice_.namespace.get(path.decode()), slice_.home):
            names.add(path.decode())
    if any(_LISTS in text for text in texts):
        names |= _subclasses(slice_)
    return names - set(slice_.items)


def _subclasses(slice_: Slice) -> set[str]:
    """Return the notebook's subclasses of captured classes."""
    values = (slice_.namespace.get(name) for name, item in slice_.items.items() if item.how in {"data", "source"})
    known = [one for value in values if isinstance(value, type) for one in _listed(value)]
    return {slice_.name_of(one).partition(".")[0] for one in known} - {""}


def _listed(cls: type) -> list[type]:
    return type.__subclasses__(cls)


def in_pickles(files: Iterable[Path], slice_: Slice) -> set[str]:
    """Return the notebook's definitions that pickles among the files and the bytes of a trial name.

    A pickle names a class by its module and its name: what holds both texts is taken to do so.

    Args:
        files: The files.
        slice_: The captured names; those are left out.
    """
    values = slice_.namespace.items()
    names = {name for name, value in values if sources.is_definition(value, slice_.home)} - set(slice_.items)
    captured = (slice_.namespace.get(name) for name in slice_.values.pickles)
    found = set[str]()
    for content in chain(captured, _contents(files)):
        if isinstance(content, _BYTES) and content[:2].startswith(_PICKLES) and _has(content, slice_.home):
            found |= {name for name in names if _has(content, name)}
    return found


def _has(content: bytes | bytearray | mmap.mmap, name: str) -> bool:
    return content.find(name.encode(), 0, _READ_BYTES) >= 0


def _contents(files: Iterable[Path]) -> Iterator[mmap.mmap]:
    for path in files:
        with (
            contextlib.suppress(OSError, ValueError),  # gone meanwhile, or empty
            path.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
        ):
            yield content
