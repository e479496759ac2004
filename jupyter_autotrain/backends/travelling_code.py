"""The modules of this package that run a trial at places where the package is not installed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

PACKAGE = "jupyter_autotrain"
_MODULES = (
    "__init__.py", "errors.py", "terminal.py",
    "backends/local/cancelling.py", "backends/local/starting.py", "backends/local/status.py",
    "backends/local/status_resolution.py", "backends/local/nvidia_smi.py",
)  # fmt: skip
_PACKAGES = ("core", "core/system", "worker", "worker/environments")
_EMPTY = ("backends/__init__.py", "backends/local/__init__.py")  # ours import what only the manager's side has


def package_folder() -> Path:
    """Where this package lies on this machine."""
    return Path(__file__).parents[1]


def travelling_paths(modules: Sequence[str], packages: Sequence[str]) -> list[Path]:
    """The files of the supervisor, and those that a kind of place has besides.

    Args:
        modules: Of that kind of place, below the package's folder.
        packages: Folders whose modules all travel.
    """
    folder = package_folder()
    paths = [folder / name for name in (*_MODULES, *modules)]
    for name in (*_PACKAGES, *packages):
        paths += sorted((folder / name).glob("*.py"))
    return paths


def empty_modules(*more: str) -> list[str]:
    """Names in the archive of modules that travel without content."""
    return [f"{PACKAGE}/{name}" for name in (*_EMPTY, *more)]
