"""The files of data that travel: those whose names are written in the code or held by what is captured.

A text that names a file beside the notebook, by itself or put together of known parts, takes the file along; a pattern
of `glob` takes what it fits. Nothing else does: a folder that is named, and a call that opens what no text names, are
told with the line `ship:` that sends them.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from jupyter_autotrain.capture.differences import Difference, not_carried
from jupyter_autotrain.capture.files.ignore import IgnoreRules
from jupyter_autotrain.capture.files.path_texts import UNKNOWN, PathReader, PathText, TrialCode, texts_in
from jupyter_autotrain.capture.files.ship import below
from jupyter_autotrain.capture.syntax.nodes import called
from jupyter_autotrain.core.text_format import count
from jupyter_autotrain.errors import ShipError

_MOST_TEXTS = 20_000
_SHOWN = 3
_PATTERN = re.compile(r"[*?\[\0]")
_NO_PATH = re.compile(r"\b(?:BytesIO|StringIO|urlopen|checkpoint|tempfile|\w*download\w*|fetch\w*)\b")


@dataclass(slots=True)
class RequiredFiles:
    """The part of the notebook's folder that a trial gets.

    Attributes:
        files: The files, by their path in the trial's folder.
        origins: What names each of them.
        elsewhere: Files that do not travel with the code: those named by an absolute path, and the header's `data:`.
        folders: Folders that are made in a trial, empty as far as nothing travels into them.
        written: Files that the code may write to; all of them where `writes_any`.
        differences: What a trial does not have.
    """

    files: dict[str, Path] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    elsewhere: set[Path] = field(default_factory=set)
    folders: set[str] = field(default_factory=set)
    written: set[str] = field(default_factory=set)
    writes_any: bool = False
    differences: list[Difference] = field(default_factory=list)

    @property
    def all(self) -> list[Path]:
        """All files that are read."""
        return [*self.files.values(), *self.elsewhere]

    def add(self, files: Mapping[str, Path], origin: str) -> None:
        """Take in files that something names there."""
        for relative_path, path in files.items():
            self.files.setdefault(relative_path, path)
            self.origins.setdefault(relative_path, origin)

    def may_write(self, relative_path: str) -> bool:
        """Tell whether the code may write to a file that travels."""
        return relative_path in self.written or (self.writes_any and not relative_path.endswith(".py"))


def find(
    script: PathReader, code: TrialCode, modules: Mapping[str, Path], folder: Path, ignore: IgnoreRules, *, named: bool
) -> RequiredFiles:
    """Find the files below the notebook's folder that the trial's code names.

    Args:
        script: The texts of the script.
        code: What runs in a trial.
        modules: Files of the modules that travel with it, by their path in the trial's folder.
        folder: The notebook's folder.
        ignore: Files that stay here.
        named: Whether the header names files itself (`ship:`), so that what is unknown need not be reported.

    Raises:
        ShipError: The code names a file outside of the notebook's folder by a relative path.
    """
    readers = [script, *_readers(modules, code)]
    found = _Found(folder, ignore)
    for reader in readers:
        found.take_all(reader)
    for name, value in code.values.items():
        for text in islice(texts_in(value), _MOST_TEXTS):
            found.take(PathText(text, name))
    found.raise_outside()
    if not named:
        found.tell_folders()
        found.tell_unknown(readers)
    return found.files


def _readers(modules: Mapping[str, Path], code: TrialCode) -> Iterator[PathReader]:
    for relative_path, path in modules.items():
        if relative_path.endswith(".py"):
            try:
                tree = ast.parse(path.read_bytes())
            except (OSError, SyntaxError, ValueError):
                continue  # it fails to import here too
            yield PathReader(tree, code, relative_path)


class _Found:
    """The files that texts name.

    Args:
        folder: The notebook's folder.
        ignore: Files that stay here.
    """

    def __init__(self, folder: Path, ignore: IgnoreRules) -> None:
        self._folder = folder
        self._ignore = ignore
        self._outside: dict[str, str] = {}
        self._named_folders: dict[str, str] = {}
        self._seen = Counter[tuple[str, str]]()
        self.files = RequiredFiles()

    def take_all(self, reader: PathReader) -> None:
        """Take the files that a source names, but those that it writes itself above the line that names them."""
        above = dict[str, int]()
        for opening in reader.openings:
            path = reader.known(opening.path)
            if opening.mode:
                self._note_written(posixpath.normpath(path), reader.origin(opening.call))
            if opening.mode == "w":
                above.setdefault(path, opening.call.lineno)
        for one in reader.texts():
            if one.line <= above.get(one.text, one.line):
                self.take(one)
        for opening in reader.openings:
            if opening.reads and not opening.mode and called(opening.call) not in {"glob", "rglob"}:
                self._take_folder(reader.known(opening.path), reader.origin(opening.call))

    def _take_folder(self, text: str, origin: str) -> None:
        """Take all of a folder that a call reads."""
        place = posixpath.normpath(text)
        path = self._folder / place
        if place in {"", "."} or place.startswith(("/", "..", "~")) or _PATTERN.search(place) or not path.is_dir():
            return
        inside = [one for one in path.rglob("*") if one.is_dir()]
        self.files.folders.update(
            one.relative_to(self._folder).as_posix() for one in inside if not self._is_ignored(one)
        )
        self.files.add(dict(below([path], self._folder, self._ignore, [path])), origin)

    def _is_ignored(self, path: Path) -> bool:
        return self._ignore(path.relative_to(self._folder).as_posix(), is_folder=path.is_dir())

    def take(self, one: PathText) -> None:
        """Take the file that a text names, beside the notebook or beside its module."""
        text = one.text.removeprefix("sqlite:///")
        self._seen[text, one.home] += 1
        if self._seen[text, one.home] > 1 or not text or "://" in text or text.startswith("~"):
            return
        try:
            self._take(posixpath.normpath(text), one)
            if one.home:
                self._take(posixpath.normpath(posixpath.join(one.home, text)), one)
        except (OSError, ValueError):
            return  # a text that can be no path

    def _take(self, place: str, one: PathText) -> None:
        if place.startswith("/"):
            self.files.elsewhere |= {Path(place)} if Path(place).is_file() else set()
        elif place.split("/", 1)[0] == "..":
            if one.line and place.strip("./") and (self._folder / place).exists():
                self._outside.setdefault(place, one.origin)
        elif _PATTERN.search(place):
            for path in sorted(self._folder.glob(_as_glob(place))):
                self._take_one(path, one.origin)
        elif place != ".":
            self._take_one(self._folder / place, one.origin)

    def _take_one(self, path: Path, origin: str) -> None:
        relative_path = path.relative_to(self._folder).as_posix()
        parent = posixpath.dirname(relative_path)
        if path.is_dir() and not self._is_ignored(path):
            self.files.folders.add(relative_path)
            self._named_folders.setdefault(relative_path, origin)
        elif path.is_file() and not self._ignore(relative_path):
            self.files.add({relative_path: path}, origin)
        elif parent and path.parent.is_dir():
            self.files.folders.add(parent)

    def _note_written(self, place: str, origin: str) -> None:
        """Note the file that a call writes, and its folder."""
        if place == "." or UNKNOWN in place:
            self.files.writes_any = True
        self.files.written.add(place)
        for folder in (place, posixpath.dirname(place)):
            self._note_folder(folder, place, origin)

    def _note_folder(self, folder: str, place: str, origin: str) -> None:
        """Note a folder that is written into, so that there is one in a trial."""
        if not folder or folder.startswith("/"):
            return
        for path in self._folder.glob(_as_glob(folder)) if _PATTERN.search(folder) else [self._folder / folder]:
            if path.is_dir() and folder.startswith(".."):
                self._outside.setdefault(place, origin)
            elif path.is_dir() and path != self._folder:
                self.files.folders.add(path.relative_to(self._folder).as_posix())

    def raise_outside(self) -> None:
        """Raise the error of files that lie outside of the notebook's folder, if any do."""
        if self._outside:
            raise _outside(self._outside, self._folder)

    def tell_folders(self) -> None:
        """Report folders that are named and of which nothing travels."""
        for place, origin in self._named_folders.items():
            travels = any(name.startswith(f"{place}/") for name in self.files.files)
            if not travels and any((self._folder / place).iterdir()):
                self._tell(f"what lies in {place}/, which {origin} names: `ship: [{place}]` sends it")

    def tell_unknown(self, readers: Sequence[PathReader]) -> None:
        """Report calls that open what no text names."""
        openings = [(one, one.path, reader) for reader in readers for one in reader.openings if one.path is not None]
        written = {ast.dump(path) for one, path, _ in openings if one.mode}
        for one, path, reader in openings if self._has_others() else ():
            is_told = one.reads and ast.dump(path) not in written and not reader.is_known(path)
            if is_told and not _NO_PATH.search(ast.unparse(path)):
                opened = f"{reader.origin(one.call)} ({ast.unparse(one.call.func)}) opens a file"
                self._tell(f"{opened} whose name is not known before it runs: name it under `ship:`")

    def _has_others(self) -> bool:
        """Tell whether there is anything beside the notebook that does not travel and may be opened."""
        here = (path.name for path in self._folder.iterdir() if not path.name.startswith((".", "__pycache__")))
        return any(name not in self.files.files and not name.endswith((".py", ".ipynb")) for name in here)

    def _tell(self, text: str) -> None:
        one = not_carried(text)
        if one not in self.files.differences:
            self.files.differences.append(one)


def _as_glob(place: str) -> str:
    """Return a path of which parts are unknown as a pattern; an unknown end may lie several folders deep."""
    deep = place.removesuffix(f"/{UNKNOWN}")
    return (place if deep == place else f"{deep}/**/*").replace(UNKNOWN, "*")


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
