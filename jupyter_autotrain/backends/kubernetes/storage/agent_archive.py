"""What pods run, as an archive that Python starts: agent, supervisor and what they import, compiled where it helps."""

from __future__ import annotations

import gzip
import importlib.util
import io
import marshal
import sys
import tarfile
import zipfile
from functools import cache
from pathlib import Path

from jupyter_autotrain.backends import travelling_code
from jupyter_autotrain.backends.kubernetes.storage.code_objects import CodeFile
from jupyter_autotrain.backends.kubernetes_pod import places

_MODULES = ("backends/environments/comparison.py",)
_PACKAGES = ("backends/kubernetes_pod",)
_EMPTY = "backends/environments/__init__.py"  # ours imports what only the manager's side has
_MAIN = "backends/kubernetes_pod/unpack.py"
_COMPILED = frozenset({"backends", "worker"})  # most of what a pod imports; with all the rest it would be too large
_UNCHECKED_HASH = 0b01
_WITHOUT_REFERENCES = 2
_TIME = (1980, 1, 1, 0, 0, 0)  # the same content gives the same archive


@cache
def agent_file() -> CodeFile:
    """The archive; the same in every process of this version."""
    package = travelling_code.package_folder()
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in travelling_code.travelling_paths(_MODULES, _PACKAGES):
            module = path.relative_to(package.parent)
            _add(archive, str(module), path.read_bytes())
            if module.parts[1] in _COMPILED:
                _add(archive, _compiled_name(module), _compiled(module, path.read_bytes()))
        for name in travelling_code.empty_modules(_EMPTY):
            _add(archive, name, b"")
        _add(archive, "__main__.py", (package / _MAIN).read_bytes())
    return CodeFile(places.AGENT_ARCHIVE, content.getvalue())


def _compiled_name(module: Path) -> str:
    return str(module.parent / "__pycache__" / f"{module.stem}.{sys.implementation.cache_tag}.pyc")


def _compiled(module: Path, source: bytes) -> bytes:
    """A module for pods whose Python is of the manager's version: others pass over it, and compile for themselves.

    It belongs to its source by a hash that is not checked, as the file formats of PEP 552; the marshal format without
    references is the same in every process.
    """
    code = compile(source, str(module), "exec", dont_inherit=True)
    header = importlib.util.MAGIC_NUMBER + _UNCHECKED_HASH.to_bytes(4, "little") + importlib.util.source_hash(source)
    return header + marshal.dumps(code, _WITHOUT_REFERENCES)


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    info = zipfile.ZipInfo(name, _TIME)
    info.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(info, data)


def folder_file(name: str, folder: Path) -> CodeFile:
    """A folder as a compressed tar file; the same content gives the same file.

    Args:
        name: Of the file.
        folder: Its regular files and folders are taken, with their modes.
    """
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(folder.rglob("*")):
            info = archive.gettarinfo(str(path), str(path.relative_to(folder)))
            info.mtime = info.uid = info.gid = 0
            info.uname = info.gname = ""
            if info.isreg():
                with path.open("rb") as file:
                    archive.addfile(info, file)
            elif info.isdir():
                archive.addfile(info)
    return CodeFile(name, gzip.compress(content.getvalue(), mtime=0))
