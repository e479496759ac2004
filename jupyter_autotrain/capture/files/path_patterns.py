"""Paths of which parts are unknown, matched against what lies in a folder."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from jupyter_autotrain.capture.files.path_methods import ANY, STAR

_MEANING = {ANY: ".*", STAR: "[^/]*"}


def is_known(pattern: str) -> bool:
    """Whether every part of a path is known."""
    return ANY not in pattern and STAR not in pattern


def known_start(pattern: str) -> str:
    """A path up to its first unknown part."""
    return re.split(f"[{ANY}{STAR}]", pattern, maxsplit=1)[0]


def shown(pattern: str) -> str:
    """A path for people, with stars for what is unknown."""
    return pattern.replace(ANY, "*").replace(STAR, "*")


@cache
def expression(pattern: str) -> re.Pattern[str]:
    """A path of which parts may be unknown, as a regular expression."""
    meaning = {ANY: ".*", STAR: "[^/]*"}
    return re.compile(
        "".join(meaning.get(part) or re.escape(part) for part in re.split(f"([{ANY}{STAR}])", pattern)), re.DOTALL
    )


def matching(pattern: str, folder: Path) -> Iterator[Path]:
    """The files and folders that a path of which parts are unknown may mean; the known part names the folder."""
    top = folder / posixpath.dirname(known_start(pattern))
    fits = expression(pattern)
    deepest = None if ANY in pattern and top != folder else pattern.count("/")
    for root, folders, names in os.walk(top):
        inside = Path(root).relative_to(folder).as_posix()
        depth = 0 if inside == "." else inside.count("/") + 1
        for name in sorted([*names, *folders]):
            if fits.fullmatch(name if inside == "." else f"{inside}/{name}"):
                yield Path(root, name)
        if deepest is not None and depth >= deepest:
            folders[:] = []
