"""The calls of some code that open files: the expression that names the file, and how it is used."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass

from jupyter_autotrain.capture.syntax.nodes import called, keywords_of

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
    found = [_opening(call) for call in calls]
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
