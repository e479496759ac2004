"""What pods run, as an archive that Python starts: agent, supervisor and what they import, compiled where it helps."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from functools import cache
from pathlib import Path

from jupyter_autotrain.backends.kubernetes.code_objects import CodeFile
from jupyter_autotrain.backends.kubernetes_pod import places

_NAME = "jupyter_autotrain"
_MODULES = (
    "__init__.py", "errors.py", "terminal.py",
    "backends/local/cancelling.py", "backends/local/starting.py", "backends/local/status.py",
    "backends/local/status_resolution.py", "backends/local/nvidia_smi.py", "backends/environments/comparison.py",
)  # fmt: skip
_PACKAGES = ("core", "core/system", "worker", "worker/environments", "backends/kubernetes_pod")
_EMPTY = (
    "backends/__init__.py",
    "backends/local/__init__.py",
    "backends/environments/__init__.py",
)  # ours import what only the manager's side has
_MAIN = "backends/kubernetes_pod/unpack.py"
_TIME = (1980, 1, 1, 0, 0, 0)  # the same content gives the same archive


@cache
def agent_file() -> CodeFile:
    """The archive; the same in every process of this version."""
    package = Path(__file__).parents[2]
    paths = [package / name for name in _MODULES]
    for name in _PACKAGES:
        paths += sorted((package / name).glob("*.py"))
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in paths:
            _add(archive, f"{_NAME}/{path.relative_to(package)}", path.read_bytes())
        for name in _EMPTY:
            _add(archive, f"{_NAME}/{name}", b"")
        _add(archive, "__main__.py", (package / _MAIN).read_bytes())
    return CodeFile(places.AGENT_ARCHIVE, content.getvalue())


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
