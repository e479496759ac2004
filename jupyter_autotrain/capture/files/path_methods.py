"""What functions and methods of paths and texts make of a path of which parts may be unknown."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

ANY: Final = "\0"
"""Stands for a part of a path that is known only at run time."""
STAR: Final = "\1"
"""Stands for the stars of a `glob` pattern: any part of one name."""
MOST: Final = 20_000
"""How many values of one expression are looked at."""

JOINS: Final = frozenset({"Path", "PosixPath", "PurePath", "PurePosixPath", "join"})
KEEPS: Final = frozenset({
    "abspath", "array", "asarray", "chain", "choice", "choices", "copy", "cycle", "deepcopy", "enumerate",
    "expandvars", "filter", "fspath", "islice", "iter", "list", "max", "min", "natsorted", "next", "normpath",
    "permutation", "realpath", "repeat", "reversed", "sample", "set", "shuffle", "sorted", "str", "tqdm",
    "train_test_split", "trange", "tuple", "zip",
})  # fmt: skip
"""Functions that give what they get, or a part of it."""
_KEEPS_TEXT: Final = frozenset({"absolute", "as_posix", "expanduser", "resolve", "__str__", "samefile"})
_OF_TEXT: Final = frozenset({
    "lower", "lstrip", "removeprefix", "removesuffix", "replace", "rstrip", "strip", "title", "upper", "zfill",
    "capitalize",
})  # fmt: skip
_MOST_COUNTED: Final = 1_000


def _listed(_: str) -> list[object]:
    return [[ANY]]


def _below(text: str) -> list[object]:
    return [[f"{text}/{ANY}"]]


def _walked(text: str) -> list[object]:
    return [[text, ANY]]


def _globbed(text: str) -> list[object]:
    return [[unknown_for_stars(text)]]


FUNCTIONS: Final[Mapping[str, Callable[[str], list[object]]]] = {
    "basename": lambda text: [part(text, "name")],
    "cwd": lambda _: ["."],
    "dirname": lambda text: [posixpath.dirname(text)],
    "expanduser": lambda text: [str(Path(text).expanduser())] if ANY not in text else [text],
    "getcwd": lambda _: ["."],
    "glob": _globbed,
    "home": lambda _: [str(Path.home())],
    "iglob": _globbed,
    "listdir": _listed,
    "scandir": _below,
    "splitext": lambda text: list(posixpath.splitext(text)) if ANY not in text else [text],
    "walk": _walked,
}
"""What functions of one path give, by their names."""


def unknown_for_stars(text: str) -> str:
    """A pattern of `glob` as a path of which parts are unknown."""
    return text.replace("**/", ANY).replace("**", ANY).replace("*", STAR).replace("?", STAR)


def part(text: str, name: str) -> str:
    """An attribute of a path, such as `parent` or `stem`."""
    folder, last = posixpath.split(text)
    stem, suffix = posixpath.splitext(last)
    return {"parent": folder or ".", "parents": folder or ".", "name": last, "stem": stem, "suffix": suffix}[name]


def called(text: str, name: str, arguments: Sequence[Sequence[object]]) -> list[object]:
    """What a method of a path or a text gives."""
    if name in _KEEPS_TEXT or name in KEEPS:
        return [text]
    if name in _OF_TEXT:
        fixed = [one[0] for one in arguments if len(one) == 1 and isinstance(one[0], str | int)]
        return [getattr(text, name)(*fixed)] if len(fixed) == len(arguments) else [ANY]
    return _of_path(text, name, arguments)


def _of_path(text: str, name: str, arguments: Sequence[Sequence[object]]) -> list[object]:
    if name in {"glob", "rglob"}:
        between = f"/{ANY}" if name == "rglob" else "/"
        return [[unknown_for_stars(f"{text}{between}{one}") for one in _first(arguments)]]
    if name in {"iterdir", "walk"}:
        return [[f"{text}/{ANY}"]]
    if name in {"with_suffix", "with_name", "with_stem"}:
        return [_with(text, name, str(one)) for one in _first(arguments)]
    return [] if name in {"open", "read_text", "read_bytes"} else [ANY]


def _first(arguments: Sequence[Sequence[object]]) -> Iterable[object]:
    return arguments[0] if arguments else [ANY]


def _with(text: str, name: str, new: str) -> str:
    folder, last = posixpath.split(text)
    stem, suffix = posixpath.splitext(last)
    changed = {"with_suffix": stem + new, "with_name": new, "with_stem": new + suffix}[name]
    return posixpath.join(folder, changed)


def formatted(values: Iterable[object], spec: str) -> list[object]:
    """Values by a format such as `03d`."""
    found: list[object] = []
    for value in values:
        try:
            found.append(ANY if ANY in (value, spec) else format(value, spec))
        except (ValueError, TypeError):
            found.append(ANY)
    return found


def counted(bounds: Sequence[Sequence[object]]) -> list[object]:
    """The numbers of a `range`, when its bounds are known."""
    numbers = [one[0] for one in bounds if len(one) == 1 and isinstance(one[0], int)]
    if not numbers or len(numbers) != len(bounds):
        return [ANY]
    try:
        return [list(range(*numbers)[:_MOST_COUNTED])]
    except (TypeError, ValueError):
        return [ANY]


def of_function(name: str, texts: Iterable[object]) -> list[object]:
    """What a function gives for each of these paths; of a function that is not known, anything."""
    by_text = FUNCTIONS.get(name)
    return [ANY] if by_text is None else [found for text in texts for found in by_text(str(text))]
