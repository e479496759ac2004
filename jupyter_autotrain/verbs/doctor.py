"""What `doctor` looks at: the home, the store, the manager, the limits, the optional packages."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from jupyter_autotrain import backends, manager
from jupyter_autotrain.client import leftovers
from jupyter_autotrain.core.backend import BackendContext
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.sizes import format_bytes
from jupyter_autotrain.core.wording import count
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.store import Store

_OPTIONAL = {
    "torch": "parallel",
    "paramiko": "ssh",
    "mpi4py": "mpi",
    "kubernetes": "kubernetes",
    "nvidia-ml-py": "gpu",
    "jupyterlab": "lab",
}
_FREE_BYTES_WANTED = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Check:
    """One finding: what was looked at, how it is, what to do when it is not good."""

    name: str
    good: bool
    text: str
    action: str = ""


def examine(home: Home) -> list[Check]:
    """Look at everything; a fault is a finding, never an exception."""
    return [
        Check("python", sys.version_info >= (3, 11), sys.version.split()[0], "Use Python 3.11 or newer."),
        *_examine_store(home),
        _examine_manager(home),
        *_examine_backends(home),
        _examine_packages(),
    ]


def _examine_store(home: Home) -> Iterator[Check]:
    try:
        with Store.open(home) as store:
            yield from _examine_rows(store)
            yield from _examine_leftovers(home, store)
    except AutotrainError as error:
        yield Check("store", False, error.found, error.action)
        return
    mode = home.root.stat().st_mode & 0o777
    private = mode == 0o700 and home.root.stat().st_uid == os.getuid()
    yield Check("home", private, f"mode {mode:o}", f"Run: chmod 700 {home.root}")
    free = shutil.disk_usage(home.root).free
    yield Check(
        "disk", free > _FREE_BYTES_WANTED, f"{format_bytes(free)} free", "Free some space, or: %autotrain clean"
    )


def _examine_rows(store: Store) -> Iterator[Check]:
    if faults := store.damage():
        yield Check("store", False, f"damaged: {'; '.join(faults[:3])}", "Run: %autotrain doctor --repair")
        return
    yield Check("store", True, f"{count(len(store.ids()), 'experiment')}, journal {store.journal}")


def _examine_leftovers(home: Home, store: Store) -> Iterator[Check]:
    left = leftovers.find(home, store)
    lost = leftovers.without_row(home, store)
    if left:
        origins = ", ".join(sorted({leftover.origin for leftover in left}))
        total = format_bytes(sum(leftover.size_bytes for leftover in left))
        yield Check("leftovers", False, f"{len(left)} ({total}): {origins}", "Run: %autotrain clean --yes")
    if lost:
        names = ", ".join(folder.name for folder in lost[:5]) + (" ..." if len(lost) > 5 else "")
        told = f"{count(len(lost), 'experiment')} of which only the files are left: {names}"
        yield Check("lost", False, told, f"Take what you need out of {lost[0].parent}, then delete those folders.")


def _examine_manager(home: Home) -> Check:
    status = manager.status(home)
    if not status.alive:
        return Check("manager", True, "not running; the first submit starts it")
    return Check("manager", True, f"running, pid {status.pid}, {format_bytes(status.resident_bytes)}")


def _examine_backends(home: Home) -> Iterator[Check]:
    for name in backends.names():
        try:
            place = backends.create(backends.profile(name), BackendContext(home))
            probe = place.probe()
            limits = place.discover().limits if probe.usable else ""
            told = [part.rstrip(".") for part in (probe.reason, limits) if part]
            yield Check(f"backend {name}", probe.usable, "; ".join(told))
        except AutotrainError as error:
            yield Check(f"backend {name}", False, error.found, error.action)


def _examine_packages() -> Check:
    found = []
    missing = []
    for package, extra in _OPTIONAL.items():
        try:
            found.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            missing.append(f"{package} (pip install 'jupyter-autotrain[{extra}]')")
    told = [", ".join(found), f"not installed: {', '.join(missing)}" if missing else ""]
    return Check("optional packages", True, "; ".join(part for part in told if part))
