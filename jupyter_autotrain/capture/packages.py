"""The installed distributions that a captured cell needs: of its imports, of its shipped modules, of its data."""

from __future__ import annotations

import ast
import importlib.machinery
import importlib.metadata
import sys
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from pathlib import Path

from jupyter_autotrain.agent.environments.python_environment import PythonPackage
from jupyter_autotrain.capture.files import modules

_OURS = "jupyter_autotrain"  # it travels by itself
_MOST_REMEMBERED = 4096
_FolderTimes = tuple[tuple[str, int], ...]


def find(tree: ast.AST, files: Mapping[str, Path], in_data: Collection[str]) -> tuple[PythonPackage, ...]:
    """Return the distributions, in alphabetical order.

    A module that the cell imports and that is not installed here needs none: it fails, or is not imported, here too.

    Args:
        tree: The captured script.
        files: The shipped files, by their places.
        in_data: Modules that pickles refer to.
    """
    imported = modules.imported(tree) | set(in_data)
    for relative_path, path in files.items():
        imported |= modules.imports_of(path, relative_path)
    shipped = {Path(relative_path).parts[0].removesuffix(".py") for relative_path in files}
    names = sorted(name for name in imported if _may_be_installed(name, shipped))
    return _packages(names, set(in_data))


def _may_be_installed(name: str, shipped: Collection[str]) -> bool:
    top = name.partition(".")[0]
    return bool(top) and top != _OURS and top not in shipped and top not in sys.stdlib_module_names


def _packages(names: Iterable[str], in_data: Collection[str]) -> tuple[PythonPackage, ...]:
    times = _folder_times()
    found: dict[str, tuple[str, set[str]]] = {}
    for name in names:
        installed = _distribution(name, times)
        if installed is not None:
            distribution, version = installed
            found.setdefault(distribution, (version, set()))[1].add(name)
    packages = []
    for name in sorted(found, key=str.lower):
        version, users = found[name]
        tops = sorted({one.partition(".")[0] for one in users})
        packages.append(PythonPackage(name, version, tuple(tops), is_in_data=not users.isdisjoint(in_data)))
    return tuple(packages)


def _folder_times() -> _FolderTimes:
    """Return the folders of the search path, and when each changed last.

    An installation changes its folder.
    """
    times = []
    for folder in dict.fromkeys(sys.path):
        try:
            times.append((folder, Path(folder).stat().st_mtime_ns))
        except OSError:
            continue
    return tuple(times)


@lru_cache(maxsize=_MOST_REMEMBERED)
def _distribution(module: str, times: _FolderTimes) -> tuple[str, str] | None:
    """Return name and version of the distribution that brings a module; None where none does."""
    top, _, rest = module.partition(".")
    named = _named_like(top)
    if named is not None:
        return named
    owners = _owners(top, times)
    if len(owners) > 1 and rest:  # several share a namespace package: the one with the longest part of the name
        deeper = [owner for owner in owners if _records(owner, module)]
        owners = deeper or owners
    return _name_and_version(owners[0]) if owners else None


def _named_like(top: str) -> tuple[str, str] | None:
    """Return name and version of the distribution that is named like a module.

    Most are; this spares reading the records of all that is installed.
    """
    try:
        distribution = importlib.metadata.distribution(top)
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return None
    return _name_and_version(distribution) if _records(distribution, top) else None


def _name_and_version(distribution: importlib.metadata.Distribution) -> tuple[str, str] | None:
    fields = distribution.metadata  # read once: each access parses the whole file
    name = fields["Name"]
    version = fields["Version"]
    return (name, version) if name and version else None


@lru_cache(maxsize=_MOST_REMEMBERED)
def _owners(top: str, times: _FolderTimes) -> list[importlib.metadata.Distribution]:
    """Return all distributions that bring a part of a top-level module."""
    folders = [folder for folder, _ in times]
    return [one for one in importlib.metadata.distributions(path=folders) if _records(one, top)]


def _records(distribution: importlib.metadata.Distribution, module: str) -> bool:
    """Tell whether a distribution's list of files has a module or package."""
    record = "\n" + (distribution.read_text("RECORD") or distribution.read_text("installed-files.txt") or "")
    place = module.replace(".", "/")
    return any(f"\n{place}{end}" in record for end in ("/", *importlib.machinery.all_suffixes()))
