"""What pods run, as an archive that Python starts: agent, supervisor and what they import, also compiled."""

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
from jupyter_autotrain.backends.kubernetes_pod import places, unpack

_MODULES = ("backends/environments/comparison.py",)
_PACKAGES = ("backends/kubernetes_pod",)
_EMPTY = "backends/environments/__init__.py"  # ours imports what only the manager's side has
_UNPACK = "backends/kubernetes_pod/unpack.py"
_MAIN = "import sys\nimport unpack\n\nunpack.main(sys.argv[0])\n"
_UNCHECKED_HASH = 0b01
_WITHOUT_REFERENCES = 2  # every Python reads this format
_TIME = (1980, 1, 1, 0, 0, 0)  # the same content gives the same archive


@cache
def agent_file() -> CodeFile:
    """The archive; the same in every process of this version."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        _add(archive, unpack.MODULES, marshal.dumps(_files(), _WITHOUT_REFERENCES))
        _add(archive, "unpack.py", (travelling_code.package_folder() / _UNPACK).read_bytes())
        _add(archive, "__main__.py", _MAIN.encode())
    return CodeFile(places.AGENT_ARCHIVE, content.getvalue())


def _files() -> dict[str, bytes]:
    """All modules and their compiled twins, by their paths."""
    package = travelling_code.package_folder()
    sources = {Path(name): b"" for name in travelling_code.empty_modules(_EMPTY)}
    for path in travelling_code.travelling_paths(_MODULES, _PACKAGES):
        sources[path.relative_to(package.parent)] = path.read_bytes()
    compiled = {_compiled_name(module): _compiled(module, source) for module, source in sources.items()}
    return {**{str(module): source for module, source in sources.items()}, **compiled}


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
