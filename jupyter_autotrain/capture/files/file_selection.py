"""From the calls that open files to the files that travel, the folders that are made, and the differences to report."""

from __future__ import annotations

import ast
import os
import posixpath
import shlex
from collections.abc import Iterable
from pathlib import Path

from jupyter_autotrain.capture.differences import Difference, DifferenceKind
from jupyter_autotrain.capture.files.ignore import IgnoreRules
from jupyter_autotrain.capture.files.opened import Opening
from jupyter_autotrain.capture.files.openers import FileOperation
from jupyter_autotrain.capture.files.path_methods import ANY, unknown_for_stars
from jupyter_autotrain.capture.files.path_patterns import expression, is_known, known_start, matching, shown
from jupyter_autotrain.capture.files.required_files import RequiredFiles
from jupyter_autotrain.capture.files.ship import below
from jupyter_autotrain.core.text_format import count
from jupyter_autotrain.errors import ShipError

_LONGEST = 400
_SHOWN = 3
_MOST_FOLDERS = 2_000
_READS = frozenset({FileOperation.READ, FileOperation.FOLDER, FileOperation.UPDATE, FileOperation.CHECK})
_WRITES = frozenset({FileOperation.WRITE, FileOperation.UPDATE})


class FileSelection:
    """Decides what travels.

    Args:
        folder: The notebook's folder.
        ignore: Files that stay here.
        named: Whether the header names files itself (`ship:`), so that what is unknown need not be reported.
    """

    def __init__(self, folder: Path, ignore: IgnoreRules, *, named: bool) -> None:
        self._folder = folder
        self._ignore = ignore
        self._named = named
        self.found = RequiredFiles()
        self._outside: dict[str, str] = {}

    def add(self, openings: list[Opening]) -> RequiredFiles:
        """Take in all calls.

        Raises:
            ShipError: The code opens what lies outside the notebook's folder by a relative path.
        """
        made = {text for one in openings if one.use.makes_folder for text in one.texts}
        for one in openings:
            if one.use.how is FileOperation.RUN:
                self._run(one)
                continue
            texts = one.texts - self._own_outputs(one, openings)
            if one.use.how in _READS:
                self.found.elsewhere |= {Path(text) for text in texts if text.startswith("/") and is_known(text)}
            relative_paths = [
                relative_path for text in sorted(texts) if (relative_path := self._relative_path(text, one)) is not None
            ]
            for relative_path in relative_paths:
                self._take(relative_path, one, made)
            if not relative_paths and texts:
                self._unknown(one, openings)
        if self._outside:
            raise _outside(self._outside, self._folder)
        return self.found

    # One path

    def _relative_path(self, text: str, opening: Opening) -> str | None:
        """The normal form of a path below the notebook's folder; None when it is absolute, outside, or not known."""
        text = text.removeprefix("sqlite:///")
        if not text or len(text) > _LONGEST or "\n" in text or "://" in text or text.startswith(("/", "~", ANY)):
            return None
        relative_path = posixpath.normpath(text)
        if relative_path.split("/", 1)[0] == "..":
            self._note_outside(relative_path, opening)
            return None
        return relative_path

    def _note_outside(self, relative_path: str, opening: Opening) -> None:
        fixed = known_start(relative_path)
        known = relative_path if fixed == relative_path and opening.use.how in _READS else posixpath.dirname(fixed)
        is_made = opening.use.how not in _READS | _WRITES
        if not is_made and known.strip("./") and (self._folder / known).exists():
            self._outside.setdefault(shown(relative_path), opening.origin)

    def _take(self, relative_path: str, opening: Opening, made: set[str]) -> None:
        how = opening.use.how
        if how in _WRITES:
            self.found.written.add(relative_path)
            self._take_folder_of(relative_path, opening, made)
        if how is FileOperation.CHECK and (self._folder / relative_path).is_dir():
            self.found.folders.add(relative_path)
        elif how in _READS:
            self._take_files(relative_path, opening)

    def _take_files(self, relative_path: str, opening: Opening) -> None:
        if relative_path == ".":
            self._tell(opening, "lists the notebook's folder, of which a trial has only what is sent")
            return
        paths = self._existing(relative_path, opening)
        for path in paths:
            whole = opening.use.how is FileOperation.FOLDER or opening.use.folders
            if path.is_dir() and whole:
                self._take_subfolders(path)
            if path.is_file() or whole:
                for name, file in below([path], self._folder, self._ignore, [path]):
                    self.found.files.setdefault(name, file)
                    self.found.origins.setdefault(name, opening.origin)

    def _existing(self, relative_path: str, opening: Opening) -> list[Path]:
        exact = self._folder / relative_path
        if is_known(relative_path):
            if exact.exists():
                return [exact]
            beside = opening.root / relative_path if opening.root else exact
            if beside.is_file():
                self.found.files.setdefault(relative_path, beside)
                self.found.origins.setdefault(relative_path, opening.origin)
            relative_path = unknown_for_stars(relative_path)
        return list(matching(relative_path, self._folder)) if not is_known(relative_path) else []

    def _take_subfolders(self, path: Path) -> None:
        for root, folders, _ in os.walk(path):
            relative_paths = [Path(root, name).relative_to(self._folder).as_posix() for name in folders]
            folders[:] = [
                Path(relative_path).name
                for relative_path in relative_paths
                if not self._ignore(relative_path, is_folder=True)
            ]
            if len(self.found.folders) > _MOST_FOLDERS:
                return
            self.found.folders.update(
                relative_path for relative_path in relative_paths if not self._ignore(relative_path, is_folder=True)
            )
        self.found.folders.add(path.relative_to(self._folder).as_posix())

    # What is written

    def _take_folder_of(self, relative_path: str, opening: Opening, made: set[str]) -> None:
        """The folder that is written into, and where a part of its name is unknown all that it may be."""
        if (self._folder / relative_path).is_dir():
            self.found.folders.add(relative_path)
        parent = posixpath.dirname(relative_path)
        if not parent:
            return
        fits = expression(parent)
        there = [path for path in matching(parent, self._folder) if path.is_dir() and fits.fullmatch(self._name(path))]
        exact = self._folder / parent
        self.found.folders.update(self._name(path) for path in ([exact] if exact.is_dir() else there))
        if is_known(parent) and opening.use.strict and not _is_made(parent, made):
            self._note_missing(parent, relative_path, opening)

    def _note_missing(self, parent: str, relative_path: str, opening: Opening) -> None:
        if any((self._folder / text).parent.is_dir() for text in opening.texts):
            return
        note = (
            f"{_capital(opening.origin)} writes {shown(relative_path)}, but there is no folder {parent} here, "
            "and the code makes none: it fails there."
        )
        if not any(one.startswith(f"{_capital(opening.origin)} writes") for one in self.found.notes):
            self.found.notes.append(note)

    def _name(self, path: Path) -> str:
        return path.relative_to(self._folder).as_posix()

    @staticmethod
    def _own_outputs(opening: Opening, openings: list[Opening]) -> set[str]:
        """Paths that the code itself has written above; and those it only looks at to remove them."""
        text, line = opening.order
        before = {FileOperation.WRITE}
        if opening.use.how is FileOperation.CHECK:
            before.add(FileOperation.REMOVE)
        if opening.use.how not in _READS:
            return set()
        found: set[str] = set()
        for one in openings:
            above = one.order[0] == text and (one.order[1] < line or one.use.how is FileOperation.REMOVE)
            if one.use.how in before and above:
                found |= one.texts
        return found

    # What is reported

    def _unknown(self, opening: Opening, openings: list[Opening]) -> None:
        """An opening call of which nothing is known; what the code writes itself by the same expression is its own."""
        use = opening.use
        if use.how in _WRITES and any(text.startswith(ANY) for text in opening.texts):
            self.found.written.add(ANY)
        reads = use.sure and use.how in {FileOperation.READ, FileOperation.FOLDER}
        if self._named or not reads or not _is_unknown(opening.texts):
            return
        same = ast.dump(use.path)
        makes = _WRITES | {FileOperation.MAKE}
        if not any(one.use.how in makes and ast.dump(one.use.path) == same for one in openings):
            self._tell(opening, "opens a file whose name is not known before it runs: name it under `ship:`")

    def _run(self, opening: Opening) -> None:
        words = {word for text in opening.texts for word in _words(text)}
        here = sorted(word for word in words if (self._folder / word).is_file() and not Path(word).is_absolute())
        if here and not self._named:
            self._tell(opening, f"runs a program with {', '.join(here[:3])}: name it under `ship:`")

    def _tell(self, opening: Opening, text: str) -> None:
        call = ast.unparse(opening.use.call.func)
        one = Difference(DifferenceKind.NOT_CARRIED, f"{opening.origin} ({call}) {text}")
        if one not in self.found.differences:
            self.found.differences.append(one)


def _is_unknown(texts: Iterable[str]) -> bool:
    return all(text.startswith(ANY) for text in texts)


def _is_made(folder: str, made: set[str]) -> bool:
    """Whether the code makes a folder: itself, or something below it."""
    normal = [posixpath.normpath(text) for text in made]
    return any(expression(text).fullmatch(folder) or text.startswith(f"{folder}/") for text in normal if text != ".")


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text.replace(ANY, ""))
    except ValueError:
        return text.split()


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _outside(relative_paths: dict[str, str], folder: Path) -> ShipError:
    rows = [f"  {relative_path} ({origin})" for relative_path, origin in list(relative_paths.items())[:_SHOWN]]
    if len(relative_paths) > _SHOWN:
        rows[-1] = f"  and {len(relative_paths) - _SHOWN + 1} more"
    first = next(iter(relative_paths))
    verb = "leads" if len(relative_paths) == 1 else "lead"
    top = next(part for part in Path(first).parts if part != "..")
    up = first[: first.index(top) + len(top)]
    return ShipError(
        f"{count(len(relative_paths), 'path')} of this cell {verb} out of the notebook's folder:\n" + "\n".join(rows),
        "A trial runs in a folder of its own: files travel by their place beside the notebook.",
        f"Use the absolute path, {posixpath.normpath(folder / first)}; or link it (ln -s {up} {top}), use "
        f"{first[first.index(top) :]} and say `ship: [{top}]`.",
    )
