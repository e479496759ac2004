"""Which calls open files, folders among them, and what they do with them."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from jupyter_autotrain.capture.files import opener_names as known
from jupyter_autotrain.capture.files.program import called


class FileOperation(StrEnum):
    """What a call does with a file."""

    READ = "reads"
    FOLDER = "reads all of a folder"
    UPDATE = "reads and writes"
    WRITE = "writes"
    CHECK = "looks whether it is there"
    MAKE = "makes a folder"
    REMOVE = "removes"
    RUN = "runs a program with"


@dataclass(frozen=True, slots=True)
class FileCall:
    """A call that does something with a file.

    Attributes:
        how: What it does.
        path: The expression that names the file.
        call: The call.
        sure: Whether such a call always opens a file of this name; else only where there is one.
        folders: Whether it reads a folder, too.
        strict: Whether it fails where the folder of a file that it writes is missing.
    """

    how: FileOperation
    path: ast.expr
    call: ast.Call
    sure: bool = True
    folders: bool = False
    strict: bool = False

    @property
    def makes_folder(self) -> bool:
        """Whether the folder exists after it: it makes one, or writes a file and its folder."""
        return self.how is FileOperation.MAKE or (self.how is FileOperation.WRITE and not self.strict)


def uses(call: ast.Call, dotted: str) -> Iterator[FileCall]:
    """What a call does with files.

    Args:
        call: The call; none of a function of the user's own.
        dotted: What is called, by the module it is imported from: `numpy.load`; "" for methods of objects.
    """
    name = dotted.rpartition(".")[2] or called(call)
    is_method = isinstance(call.func, ast.Attribute) and not dotted
    if dotted in known.PLAIN_OPEN | known.MODES or (name == "open" and isinstance(call.func, ast.Name)):
        yield from _opened(call, 0)
    elif is_method and name in known.PATH_METHODS:
        yield from _of_path(call, name)
    else:
        yield from _by_name(call, name, dotted, is_method=is_method)


def _of_path(call: ast.Call, name: str) -> Iterator[FileCall]:
    """Methods of paths."""
    assert isinstance(call.func, ast.Attribute)
    owner = call.func.value
    if name == "open":
        yield from _opened(call, -1)
    elif name in {"glob", "rglob"}:
        yield FileCall(FileOperation.READ, call, call)
    elif name in known.PATH_READS:
        yield FileCall(FileOperation.READ, owner, call)
    elif name in known.PATH_WRITES:
        yield FileCall(FileOperation.WRITE, owner, call, strict=True)
    else:
        yield FileCall(_PATH_OPERATION.get(name, FileOperation.CHECK), owner, call)


_PATH_OPERATION: Final = {
    "iterdir": FileOperation.FOLDER,
    "walk": FileOperation.FOLDER,
    "makedirs": FileOperation.MAKE,
    "mkdir": FileOperation.MAKE,
}


def _opened(call: ast.Call, position: int) -> Iterator[FileCall]:
    """`open`, or one like it: what its mode says."""
    path = call.func.value if position < 0 and isinstance(call.func, ast.Attribute) else argument(call, position)
    mode = next((keyword.value for keyword in call.keywords if keyword.arg == "mode"), None)
    if mode is None and len(call.args) > position + 1:
        mode = call.args[position + 1]
    if path is not None:
        how = operation_of_mode(mode)
        yield FileCall(how, path, call, strict=how is not FileOperation.READ)


def operation_of_mode(mode: ast.expr | None) -> FileOperation:
    """What a mode such as "r+b" means; one that is not spelled out may mean anything."""
    if mode is None:
        return FileOperation.READ
    if not isinstance(mode, ast.Constant) or not isinstance(mode.value, str):
        return FileOperation.UPDATE
    if set(mode.value) & set("a+"):
        return FileOperation.UPDATE
    return FileOperation.WRITE if set(mode.value) & set("wx") else FileOperation.READ


def _by_name(call: ast.Call, name: str, dotted: str, *, is_method: bool) -> Iterator[FileCall]:
    """Functions of libraries, and methods of objects."""
    package = dotted.partition(".")[0]
    simple = _SIMPLE.get(dotted) or (_OPERATION_BY_NAME.get(name) if package in {"os", "shutil", "glob"} else None)
    if dotted in known.RUNS:
        yield from (FileCall(FileOperation.RUN, one, call) for one in call.args[:1])
    elif simple is not None:
        yield from _at(simple, call, 0)
    if package == "torchvision" and "datasets" in dotted and name not in known.FOLDERS:
        yield from _cached(call, name)
    elif name in known.FOLDERS and not (is_method and name != "flow_from_directory"):
        yield from _at(FileOperation.FOLDER, call, 0)
    elif _is_write(name, dotted, is_method=is_method):
        yield from _written(call, name, dotted)
    elif _is_read(name, dotted, is_method=is_method) and simple is None:
        yield from _read(call, name, dotted)
    if dotted or name == "flow_from_dataframe":
        yield from _by_keyword(call, name)


_SIMPLE: Final = {
    **dict.fromkeys(known.CHECKS, FileOperation.CHECK),
    **dict.fromkeys(known.UPDATES, FileOperation.UPDATE),
    "numpy.memmap": FileOperation.UPDATE,
}
_OPERATION_BY_NAME: Final = {
    **dict.fromkeys(known.REMOVES, FileOperation.REMOVE),
    **dict.fromkeys(known.MAKES, FileOperation.MAKE),
}


def _is_read(name: str, dotted: str, *, is_method: bool) -> bool:
    if (
        known.NOT_FILES.fullmatch(name)
        or dotted.partition(".")[0] in known.OBJECT_FIRST
        or dotted.startswith("sklearn.datasets")
    ):
        return False
    if is_method:
        return bool(known.READ_VERBS.fullmatch(name)) or name in {"load", "flow_from_directory"} | known.PREFIXES
    return bool(dotted) and (
        dotted in known.SURE or name in known.READS | known.PREFIXES or bool(known.READ_VERBS.fullmatch(name))
    )


def _read(call: ast.Call, name: str, dotted: str) -> Iterator[FileCall]:
    package = dotted.partition(".")[0]
    sure = dotted in known.SURE or (package == "pandas" and name.startswith("read_"))
    position = 1 if name == "spec_from_file_location" else 0
    path = argument(call, position)
    if path is not None:
        takes = name in known.TAKES_FOLDERS and (name != "load_dataset" or package == "datasets")
        mapped = any(keyword.arg == "mmap_mode" and "+" in ast.unparse(keyword.value) for keyword in call.keywords)
        yield FileCall(FileOperation.UPDATE if mapped else FileOperation.READ, path, call, sure=sure, folders=takes)
        if name in known.PREFIXES:
            star = ast.copy_location(ast.BinOp(path, ast.Add(), ast.Constant(".*")), path)
            yield FileCall(FileOperation.READ, star, call, sure=False)
    if package == "shutil" and len(call.args) > 1:
        yield FileCall(FileOperation.WRITE, call.args[1], call)


def _is_write(name: str, dotted: str, *, is_method: bool) -> bool:
    if dotted.partition(".")[0] in known.OBJECT_FIRST or (is_method and name in {"write", "dump"}):
        return False
    return (
        name in known.FIRST_WRITTEN
        or bool(known.WRITE_VERBS.fullmatch(name))
        or dotted in {"shutil.move", "os.rename", "os.replace"}
    )


def _written(call: ast.Call, name: str, dotted: str) -> Iterator[FileCall]:
    if dotted in {"shutil.move", "os.rename", "os.replace"}:
        yield from (FileCall(FileOperation.UPDATE, one, call) for one in call.args[:1])
    second = name in known.SECOND_WRITTEN or any(dotted.endswith(one) for one in known.SECOND_WRITTEN)
    path = argument(call, int(second and bool(dotted)))
    if path is not None:
        yield FileCall(FileOperation.WRITE, path, call, strict=bool(known.STRICT.fullmatch(name)))


def _cached(call: ast.Call, name: str) -> Iterator[FileCall]:
    """A data set of torchvision: what it keeps below its root; where it may download, that stays here."""
    root = argument(call, 0)
    downloads = any(k.arg == "download" and ast.unparse(k.value) != "False" for k in call.keywords)
    if root is not None and not downloads:
        inner = ast.BinOp(root, ast.Div(), ast.Constant(known.CACHES[name])) if name in known.CACHES else root
        yield FileCall(FileOperation.FOLDER, ast.copy_location(inner, root), call)


def _by_keyword(call: ast.Call, name: str) -> Iterator[FileCall]:
    """Arguments whose names say that they are files to read: `vocab_file="vocab.txt"`."""
    if name in known.FIRST_WRITTEN or known.WRITE_VERBS.fullmatch(name):
        return
    for keyword in call.keywords:
        if keyword.arg and known.READ_KEYWORDS.fullmatch(keyword.arg):
            yield FileCall(FileOperation.READ, keyword.value, call, sure=False)
        elif keyword.arg in known.FOLDER_KEYWORDS and name == "flow_from_dataframe":
            yield FileCall(FileOperation.FOLDER, keyword.value, call)


def _at(how: FileOperation, call: ast.Call, position: int) -> Iterator[FileCall]:
    path = argument(call, position)
    if path is not None:
        yield FileCall(how, path, call)
    elif how is FileOperation.FOLDER and called(call) in {"listdir", "scandir"}:
        yield FileCall(how, ast.copy_location(ast.Constant("."), call), call)


def argument(call: ast.Call, position: int, names: Collection[str] = known.KEYWORDS) -> ast.expr | None:
    """The argument of a call that names a file: by its position, else by its usual names."""
    if len(call.args) > position and not any(isinstance(one, ast.Starred) for one in call.args[: position + 1]):
        return call.args[position]
    return next((keyword.value for keyword in call.keywords if keyword.arg in names), None)
