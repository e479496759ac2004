"""The age of what a process has loaded, against what lies on the disk: an upgrade renews the process."""

from __future__ import annotations

import os
import sys
import time

from jupyter_autotrain.agent.pool.import_effects import installed_folders

_LOOK_AFTER_S = 0.2  # a look at the files of torch and pandas takes some milliseconds


class LoadedFiles:
    """The files of all loaded modules and the names of what is installed, as they are now."""

    def __init__(self) -> None:
        files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
        paths = {path for path in [*files, sys.executable] if isinstance(path, str)}
        self._stamps = {path: _stamp(path) for path in paths}
        self._installed = _installed()
        self._looked_s = float("-inf")

    def are_current(self) -> bool:
        """Tell whether none has changed; a change may be seen 0.2 s later."""
        if time.monotonic() - self._looked_s < _LOOK_AFTER_S:
            return True
        self._looked_s = time.monotonic()
        are_same = all(_stamp(path) == before for path, before in self._stamps.items())
        return are_same and _installed() == self._installed


def _stamp(path: str) -> tuple[int, ...]:
    """Return when a file was written, its size and its number; nothing where it is gone."""
    try:
        found = os.stat(path)
    except OSError:
        return ()
    return found.st_mtime_ns, found.st_size, found.st_ino


def _installed() -> set[str]:
    """Return the names of distributions and of the files that add folders to the search path."""
    found: set[str] = set()
    for folder in installed_folders():
        names = os.listdir(folder) if os.path.isdir(folder) else []
        found.update(f"{folder}{name}" for name in names if name.endswith((".dist-info", ".egg-info", ".pth")))
    return found
