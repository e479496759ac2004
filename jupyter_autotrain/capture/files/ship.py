"""Files that travel with the script: those that `ship:` names, and the limits of all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from jupyter_autotrain.agent.sizes import format_bytes
from jupyter_autotrain.capture.files.ignore import IgnoreRules
from jupyter_autotrain.capture.refusals import CaptureLimits, tree
from jupyter_autotrain.core.text_format import closest_match, count, cut
from jupyter_autotrain.errors import ShipError

_COUNTED_AT_MOST = 100_000


def globbed(patterns: Sequence[str], folder: Path, ignore: IgnoreRules) -> dict[str, Path]:
    """Return the files that `ship:` names; a folder means all files in it.

    A link that is named itself is followed wherever it leads; one that a pattern or a folder brings along, only inside
    the folder.

    Raises:
        ShipError: A pattern leaves the folder, or fits nothing.
    """
    files: dict[str, Path] = {}
    for pattern in patterns:
        _check_inside(pattern)
        paths = _glob(folder, pattern)
        named = paths if not set(pattern) & set("*?[") else []
        found = dict(below(paths, folder, ignore, named))
        if not found:
            raise _fits_nothing(pattern, folder, left_out=bool(paths))
        files |= found
    return files


def _glob(folder: Path, pattern: str) -> list[Path]:
    try:
        return sorted(folder.glob(pattern))
    except (ValueError, OSError, NotImplementedError, RecursionError) as error:
        near = pattern.replace("**", "**/*")
        raise ShipError(
            f"ship: {cut(pattern, 60)!r} is not a pattern: {error}.",
            "`*` stands for any part of a name, `**` between slashes for any folders.",
            f"Write {near!r}, for example." if "**" in pattern and len(pattern) < 60 else "Correct the pattern.",
        ) from None


def check_limits(files: Mapping[str, Path], limits: CaptureLimits) -> None:
    """Add up the files and their sizes.

    Raises:
        ShipError: Too many files or bytes, with the largest entries.
    """
    sizes = {name: path.stat().st_size for name, path in files.items()}
    total = sum(sizes.values())
    if len(files) <= limits.files and total <= limits.file_bytes:
        return
    many = count(len(files), "file") + ("" if len(files) < _COUNTED_AT_MOST else " or more")
    raise ShipError(
        f"The files to send are too many or too big: {many}, {format_bytes(total)}.\n{_largest(sizes, total)}",
        f"At most {limits.files} files and {format_bytes(limits.file_bytes)} travel with an experiment.",
        "Leave some out by .autotrainignore, or let the cell read them from an absolute path.",
    )


def _largest(sizes: Mapping[str, int], total: int) -> str:
    """Return the size tree of the files beside the notebook.

    Where one folder has nearly all, it is the tree of that folder.
    """
    top = _by_first_part(sizes)
    heaviest = max(top, key=lambda name: top[name])
    if not heaviest.endswith("/") or top[heaviest] < total * 0.9:
        return tree(top, rows=2)
    inside = {name.removeprefix(heaviest): size for name, size in sizes.items() if name.startswith(heaviest)}
    below = {f"{heaviest}{name}": size for name, size in _by_first_part(inside).items()}
    return f"  {format_bytes(top[heaviest]):>8}  {heaviest} ({len(inside)} files)\n{tree(below, rows=1)}"


def _by_first_part(sizes: Mapping[str, int]) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, size in sizes.items():
        head, slash, _ = name.partition("/")
        found[head + slash] = found.get(head + slash, 0) + size
    return found


def below(
    paths: Iterable[Path], folder: Path, ignore: IgnoreRules, named: Sequence[Path]
) -> Iterator[tuple[str, Path]]:
    """Yield the files at or below these paths that are not ignored, by their path in the folder.

    No link leads out of the folder.

    `named` are paths that may be links to anywhere.
    """
    count = 0
    inside = _inside([folder, *named])
    for path in paths:
        for file in _files(path, lambda p: ignore(p.relative_to(folder).as_posix(), is_folder=True)):
            relative_path = file.relative_to(folder).as_posix()
            if not ignore(relative_path) and file.is_file() and inside(file):
                yield relative_path, file
                if (count := count + 1) >= _COUNTED_AT_MOST:
                    return


def _inside(roots: Iterable[Path]) -> Callable[[Path], bool]:
    """Return a function that tests whether a file, links resolved, lies in one of the folders."""
    real = [root.resolve() for root in roots]

    @cache
    def known(path: Path) -> bool:
        return any(map(path.resolve().is_relative_to, real))

    return lambda file: known(file) if file.is_symlink() else known(file.parent) or file.resolve() in real


def _files(path: Path, skip: Callable[[Path], bool]) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    if skip(path):
        return
    for root, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if not skip(Path(root, name)))
        yield from (Path(root, name) for name in sorted(names))


def _check_inside(pattern: str) -> None:
    path = Path(pattern)
    if not path.is_absolute() and ".." not in path.parts and pattern.strip("./"):
        return
    raise ShipError(
        f"ship: {pattern!r} is not below the notebook's folder.",
        "Files travel by their place beside the notebook, such as data/*.csv.",
        "Copy or link them there, or let the cell read them from an absolute path.",
    )


def _fits_nothing(pattern: str, folder: Path, *, left_out: bool) -> ShipError:
    if left_out:
        return ShipError(
            f"ship: {pattern!r} names only what .autotrainignore or .nniignore leave out, or links out of the folder.",
            "A link travels where it is named itself, without a pattern.",
            "Take the files out of the ignore file, or take the pattern out of the header.",
        )
    names = sorted(path.name for path in folder.iterdir())
    near = closest_match(pattern, names)
    return ShipError(
        f"ship: {pattern!r} fits no file.",
        f"Patterns are relative to {folder}." + (f" Did you mean {near!r}?" if near else ""),
        "Correct the pattern, or take it out of the header.",
    )
