"""The code that travels to places without this package: all of `agent/`, as one archive that is the same everywhere.

Pods get it in a ConfigMap and have Python start it; hosts and login nodes get it over their connection. Each place
unpacks it by `agent.objects.agent_archive`.
"""

from __future__ import annotations

import hashlib
import importlib.util
import io
import marshal
import sys
import threading
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Final

from jupyter_autotrain.agent.objects import agent_archive

_MAIN = """import sys
import agent_archive

agent_archive.begin_pod(sys.argv[0], *[f"{run}/{agent_archive.CODE}" for run in sys.argv[1:2]])
from jupyter_autotrain.agent.pods import program

program.main()
"""
# What few trials use is compiled where they are: each archive would be larger by it.
_COMPILED_THERE: Final = (
    "agent/slurm/",
    "agent/session/",
    "agent/ranks/federated/",
    "agent/ranks/flower_app",
    "agent/ranks/debugger",
)
_UNCHECKED_HASH = 0b01
_WITHOUT_REFERENCES = 2  # every Python reads this format, and every process writes the same
_TIME = (1980, 1, 1, 0, 0, 0)  # the same content gives the same archive
_making: Final = threading.Lock()


@dataclass(frozen=True, slots=True)
class AgentArchive:
    """The archive.

    Attributes:
        content: Its bytes: a zip file that Python can start.
        digest: Their SHA-256.
    """

    content: bytes
    digest: str


def package_folder() -> Path:
    """Return the folder of this package on this machine."""
    return Path(__file__).parents[1]


def travelling_paths() -> list[Path]:
    """Return the files that travel: the package's own first module, and the agent."""
    package = package_folder()
    return [package / "__init__.py", *sorted((package / "agent").rglob("*.py"))]


def archive() -> AgentArchive:
    """Return the archive; a process makes it once, so all places run the code of the process that asks them."""
    with _making:  # of hosts that are reached at the same time one waits for it to be made
        return _archive_of_this_process()


@cache
def _archive_of_this_process() -> AgentArchive:
    return make(package_folder().parent, travelling_paths())


def make(root: Path, paths: Iterable[Path]) -> AgentArchive:
    """Return the archive of modules, most of them with their compiled twin.

    Args:
        root: The folder that their paths in the archive begin at.
        paths: The modules.

    Raises:
        OSError: One cannot be read.
    """
    files = {}
    for path in paths:
        module = path.relative_to(root)
        source = path.read_bytes()
        files[str(module)] = source
        if not any(part in str(module) for part in _COMPILED_THERE):
            files |= _compiled(module, path, source)
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as zipped:
        _add(zipped, agent_archive.MODULES, marshal.dumps(files, _WITHOUT_REFERENCES))
        _add(zipped, "agent_archive.py", Path(agent_archive.__file__).read_bytes())
        _add(zipped, "__main__.py", _MAIN.encode())
    return AgentArchive(content.getvalue(), hashlib.sha256(content.getvalue()).hexdigest())


def _compiled_name(module: Path) -> str:
    return str(module.parent / "__pycache__" / f"{module.stem}.{sys.implementation.cache_tag}.pyc")


def _compiled(module: Path, path: Path, source: bytes) -> dict[str, bytes]:
    """Return a module as places whose Python is of this version take it, by its name; others compile for themselves.

    What Python keeps compiled here is used. It belongs to its source by a hash that is not checked, as the file formats
    of PEP 552. Nothing is given for code with a slice among its constants, as Python 3.14 makes it of `x[1:]`: only a
    format with references can hold that.
    """
    code = SourceFileLoader(module.stem, str(path)).get_code(module.stem)
    assert code is not None  # a source has one
    header = importlib.util.MAGIC_NUMBER + _UNCHECKED_HASH.to_bytes(4, "little") + importlib.util.source_hash(source)
    try:
        return {_compiled_name(module): header + marshal.dumps(_named(code, str(module)), _WITHOUT_REFERENCES)}
    except ValueError:
        return {}


def _named(code: CodeType, name: str) -> CodeType:
    """Return code that names its file by its path in the archive, not on this machine."""
    inner = (_named(one, name) if isinstance(one, CodeType) else one for one in code.co_consts)
    return code.replace(co_filename=name, co_consts=tuple(inner))


def _add(zipped: zipfile.ZipFile, name: str, data: bytes) -> None:
    info = zipfile.ZipInfo(name, _TIME)
    info.compress_type = zipfile.ZIP_DEFLATED
    zipped.writestr(info, data)
