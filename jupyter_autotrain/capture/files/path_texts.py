"""The texts of some code, and of the values that it uses, that may be names of files.

Of calls that open files: the expression that names the file, and how it is used.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import PurePath

from jupyter_autotrain.capture import looking
from jupyter_autotrain.capture.script import THIS_CELL, TrialScript
from jupyter_autotrain.capture.syntax.nodes import called, keywords_of
from jupyter_autotrain.capture.syntax.scopes import own_texts
from jupyter_autotrain.capture.syntax.texts import text_of

_READS = re.compile(
    r"open|read_(?!sql|clipboard|gbq)\w+|load\w*|genfromtxt|fromfile|memmap|imread|glob|iglob|rglob|listdir|scandir"
    r"|iterdir|f?walk|chdir|copytree|connect|from_(?:pretrained|disk)|\w+_from_directory|ImageFolder|DatasetFolder"
    r"|(?:Zip|Gzip|Sound|Tar)File|File"
)
"""Calls that read the file, or all of the folder, of their first argument, or of the path that they are a method of."""
_WRITES = re.compile(
    r"to_(?:csv|excel|feather|hdf|html|json|parquet|pickle|stata|markdown)|save\w*|imwrite|dump|touch|write_\w+|tofile"
    r"|connect|memmap|copy\w*|move|rename|replace|unlink|remove|makedirs|mkdir"
)
_CHANGES = frozenset({"connect", "memmap", "move", "rename", "replace", "copy"})
_OF_PATHS = frozenset({
    "glob", "iterdir", "mkdir", "open", "read_bytes", "read_text", "rename", "replace", "rglob", "touch", "unlink",
    "write_bytes", "write_text",
})  # fmt: skip
_OPENS = frozenset({"open", "File", "ZipFile", "GzipFile", "TarFile", "SoundFile", "Dataset"})
_MODULES = frozenset({"bz2", "codecs", "glob", "gzip", "io", "lzma", "os", "shutil", "tarfile", "wave", "zarr"})
"""Modules whose functions are called like methods of paths."""
_PATHS = ("path", "file", "filename", "filepath_or_buffer", "path_or_buf", "root", "f")
_SECOND = frozenset({"joblib", "torch"})
"""Modules whose functions that write take the path after the object."""
_NO_FILES = frozenset({"json", "pickle", "yaml", "marshal", "toml", "webbrowser"})
"""Modules whose `load` and `dump` take open files."""


@dataclass(frozen=True, slots=True)
class Opening:
    """A call that opens a file, or a folder.

    Attributes:
        call: The call.
        path: The expression that names the file; None where there is none.
        mode: "w" for a file that is written anew, "a" for one that may be changed, "" for one that is not written.
        reads: Whether the file, or all of the folder, may be read.
    """

    call: ast.Call
    path: ast.expr | None
    mode: str
    reads: bool


def find(calls: Iterable[ast.Call]) -> list[Opening]:
    """Return the calls that open something."""
    found = list(map(_opening, calls))
    return [one for one in found if one.mode or one.reads]


def _opening(call: ast.Call) -> Opening:
    """Read a call: a method of a path, or a function whose first argument names the file."""
    name = called(call)
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    module = getattr(owner, "id", "")
    is_of_path = owner is not None and module not in _MODULES and name in _OF_PATHS
    mode = _mode(call, name, 0 if is_of_path else 1)
    reads = bool(_READS.fullmatch(name)) and mode != "w" and module not in _NO_FILES
    if is_of_path:
        return Opening(call, owner, mode, reads)
    position = int(ast.unparse(call.func).partition(".")[0] in _SECOND and name in {"dump", "save"})
    named = [*call.args[position : position + 1], *keywords_of(call, *_PATHS)]
    return Opening(call, named[0] if named else None, mode, reads)


def _mode(call: ast.Call, name: str, position: int) -> str:
    """Return how a call writes, as `Opening.mode`; the mode of `open` is the argument at this position."""
    modes = keywords_of(call, "mode", "mmap_mode")
    if name in _OPENS:
        modes += call.args[position : position + 1] or [ast.Constant("r")]
    if modes:
        return _of_open(modes[0])
    if not _WRITES.fullmatch(name):
        return ""
    return "a" if name in _CHANGES else "w"


def _of_open(mode: ast.expr) -> str:
    """Return the same for a mode of `open`; one that is not written out may mean anything."""
    if not isinstance(mode, ast.Constant):
        return "a"
    letters = set(str(mode.value)) & set("wxa+")
    if letters and letters <= {"w", "x"}:
        return "w"
    return "a" if letters else ""


UNKNOWN = "\0"
"""Stands for a part of a path that is known only at run time."""
_LONGEST = 400
_MOST_TEXTS = 20_000
_DEEPEST = 4
_HOLES = re.compile(r"%[^a-zA-Z%]*[a-zA-Z]|\{[^{}]*\}")


@dataclass(frozen=True, slots=True)
class TrialCode:
    """The code that runs in a trial, the captured values that it finds there, and the names that the search chooses."""

    script: TrialScript
    values: Mapping[str, object]
    parameters: Collection[str]


@dataclass(frozen=True, slots=True)
class PathText:
    """A text of the code: the text, its place for people, its line, and the folder of the module that holds it."""

    text: str
    origin: str = ""
    line: int = 0
    home: str = ""


class PathReader:
    """A reader of the texts of one source that may be names of files.

    Args:
        tree: The source.
        code: The code of the trial.
        relative_path: The module's place in the trial's folder; "" for the script.

    Attributes:
        calls: The calls of the source.
        openings: Those that open files.
    """

    def __init__(self, tree: ast.Module, code: TrialCode, relative_path: str = "") -> None:
        self._code = code
        self._relative_path = relative_path
        self._nodes = list(ast.walk(tree))
        self._own = own_texts(self._nodes)
        self._own |= {name: text for name, node in self._defaults() if (text := self.known(node))}
        self.calls = [node for node in self._nodes if isinstance(node, ast.Call)]
        self.openings = find(self.calls)

    def texts(self) -> Iterator[PathText]:
        """Yield the texts, parts of longer ones among them, but those that only what writes has."""
        skipped = self._skipped
        for node in self._nodes:
            text = self.known(node) if isinstance(node, ast.expr) and node not in skipped else ""
            if _may_be_path(text):
                words = text.split() if isinstance(node, ast.Constant) and " " in text else []
                for one in (text, *words):
                    yield self._placed(one, node)

    def known(self, node: ast.expr | None) -> str:
        """Return the text of an expression, with `UNKNOWN` for what is not known below a known folder; else ""."""
        text = self._text_of(node) if node is not None else ""
        text = text.removeprefix(f"{UNKNOWN}/")  # an unknown folder: most often that of the code itself
        return text if "/" in text.partition(UNKNOWN)[0] or UNKNOWN not in text else ""

    def is_known(self, node: ast.expr) -> bool:
        """Tell whether the files that an expression may name are known."""
        return bool(self.known(node)) and not self._text_of(node).startswith(f"{UNKNOWN}/")

    def _text_of(self, node: ast.expr) -> str:
        match node:
            case ast.BinOp(left=left, op=ast.Mod()) | ast.Call(func=ast.Attribute(value=left, attr="format")):
                return _HOLES.sub(UNKNOWN, self.known(left))
            case ast.Call(func=ast.Attribute(value=owner, attr="glob" | "rglob" as how), args=[pattern]):
                folder = self.known(owner)
                deep = "**/" if how == "rglob" else ""
                return f"{folder}/{deep}{self.known(pattern)}" if folder else self.known(pattern)
        found = text_of(node, self._named, UNKNOWN)
        return str(found) if isinstance(found, str | PurePath) else ""

    def origin(self, node: ast.AST) -> str:
        """Return the place of a node, for people."""
        line = getattr(node, "lineno", 0)
        if self._relative_path:
            return f"{self._relative_path}, line {line}"
        label, number = self._code.script.label_and_line(line)
        if not label:
            return "the notebook"
        return f"line {number}" if label == THIS_CELL else f"{label}, line {number}"

    def _defaults(self) -> Iterator[tuple[str, ast.expr]]:
        """Yield the parameters with a default whose names mean nothing else, each with its default."""
        bound = Counter(_bound_names(self._nodes))
        for node in self._nodes:
            if isinstance(node, ast.arguments):
                positional = [*node.posonlyargs, *node.args][-len(node.defaults) :]
                pairs = zip(positional, node.defaults, strict=False)
                for one, default in pairs:
                    if bound[one.arg] == 1:
                        yield one.arg, default

    def _placed(self, text: str, node: ast.AST) -> PathText:
        return PathText(text, self.origin(node), getattr(node, "lineno", 0), posixpath.dirname(self._relative_path))

    def _named(self, name: str) -> object:
        if name in self._code.parameters:
            return None
        return self._own[name] if name in self._own else self._code.values.get(name)

    @cached_property
    def _skipped(self) -> set[ast.AST]:
        """The expressions that name no file: keys, parts of longer texts, and what is only written."""
        skipped: set[ast.AST] = set()
        for one in self.openings:
            if one.mode == "w" and one.path is not None:
                skipped.update(ast.walk(one.path))
        for node in self._nodes:
            match node:
                case ast.Expr(value=ast.Constant() as text) | ast.Subscript(slice=ast.Constant() as text):
                    skipped.add(text)
                case ast.Dict(keys=keys):
                    skipped.update(filter(None, keys))
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in self._own:
                    skipped.add(value)
                case ast.Call(func=ast.Attribute(value=ast.Attribute(attr="path"))) if is_of_search_path(node):
                    skipped.update(ast.walk(node))
                case ast.BinOp() | ast.JoinedStr() | ast.Call() if self.known(node):
                    skipped.update(part for part in ast.walk(node) if part is not node)
        return skipped


def is_of_search_path(call: ast.Call) -> bool:
    """Tell whether a call is of a method of `sys.path`."""
    return ast.unparse(call.func).startswith("sys.path.")


def texts_in(value: object, depth: int = 0) -> Iterator[str]:
    """Yield the texts and paths that a value holds, in containers and attributes too."""
    if looking.is_kind(value, (str, PurePath)):
        yield from filter(_may_be_path, [str(value)])
    elif depth < _DEEPEST and not looking.is_kind(value, (bytes, int, float, type)):
        for _, _, inner in islice(looking.parts(value), _MOST_TEXTS):
            yield from texts_in(inner, depth + 1)
    elif not depth and looking.is_kind(value, type):  # one that travels by value
        yield from texts_in(dict(vars(value)), depth + 1)


def _may_be_path(text: str) -> bool:
    return 0 < len(text) <= _LONGEST and "\n" not in text


def _bound_names(nodes: Sequence[ast.AST]) -> Iterator[str]:
    for node in nodes:
        match node:
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
                yield name
