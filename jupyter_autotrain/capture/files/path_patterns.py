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


def is_known(place: str) -> bool:
    """Whether every part of a path is known."""
    return ANY not in place and STAR not in place


def known_start(place: str) -> str:
    """A path up to its first unknown part."""
    return re.split(f"[{ANY}{STAR}]", place, maxsplit=1)[0]


def shown(place: str) -> str:
    """A path for people, with stars for what is unknown."""
    return place.replace(ANY, "*").replace(STAR, "*")


@cache
def expression(place: str) -> re.Pattern[str]:
    """A place of which parts may be unknown, as a regular expression."""
    meaning = {ANY: ".*", STAR: "[^/]*"}
    return re.compile(
        "".join(meaning.get(part) or re.escape(part) for part in re.split(f"([{ANY}{STAR}])", place)), re.DOTALL
    )


def matching(place: str, folder: Path) -> Iterator[Path]:
    """The files and folders that a place of which parts are unknown may mean; the known part names the folder."""
    top = folder / posixpath.dirname(known_start(place))
    fits = expression(place)
    deepest = None if ANY in place and top != folder else place.count("/")
    for root, folders, names in os.walk(top):
        inside = Path(root).relative_to(folder).as_posix()
        depth = 0 if inside == "." else inside.count("/") + 1
        for name in sorted([*names, *folders]):
            if fits.fullmatch(name if inside == "." else f"{inside}/{name}"):
                yield Path(root, name)
        if deepest is not None and depth >= deepest:
            folders[:] = []
