"""The checks of `doctor`: the home, the store, the manager, the backends, the optional packages."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from jupyter_autotrain import backends, manager
from jupyter_autotrain.agent import system
from jupyter_autotrain.agent.sizes import format_bytes
from jupyter_autotrain.client import orphans, recovery
from jupyter_autotrain.client.orphans import no_submitter
from jupyter_autotrain.client.waiting import LOOK_S, PROBES_AT_ONCE, Patience
from jupyter_autotrain.core.backend import BackendContext, Probe
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import LOCAL, Profile
from jupyter_autotrain.core.text_format import count, first_of
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.header.profiles import Profiles
from jupyter_autotrain.store import Store

_LIST_EXTENSIONS = """
import sys
sys.modules["rfc3987_syntax"] = None
from jupyterlab.labextensions import main
main(["list"])
"""  # without a grammar of addresses that JupyterLab's import compiles for seconds, and no list needs
_OPTIONAL = {
    "torch": "parallel",
    "paramiko": "ssh",
    "mpi4py": "mpi",
    "kubernetes": "kubernetes",
    "jupyterlab": "lab",
    "mcp": "mcp",
}
_SHOWN = 5  # of many names
_FREE_BYTES_WANTED = 1_000_000_000


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One result.

    Attributes:
        name: The part that was checked.
        good: False where it needs attention.
        text: The finding.
        action: What to do where it is not good.
        applies: False where nothing here asks for the part, such as Slurm on a laptop.
    """

    name: str
    good: bool
    text: str
    action: str = ""
    applies: bool = True

    @property
    def mark(self) -> str:
        """The word in front of its line."""
        if not self.applies:
            return "n/a"
        return "ok" if self.good else "BAD"


def run_checks(home: Home, cwd: Path, environ: Mapping[str, str]) -> list[CheckResult]:
    """Run all checks; a fault is a result, never an exception.

    Args:
        home: The home of the experiments.
        cwd: The folder, whose profiles are checked.
        environ: The variables, which lead to the user's profiles.
    """
    context = backends.header_context(cwd, environ)
    profiles, faults = context.profiles()
    return [
        CheckResult("python", sys.version_info >= (3, 11), sys.version.split()[0], "Use Python 3.11 or newer."),
        _check_system(),
        *_check_store(home),
        _check_manager(home),
        *(CheckResult("profiles", False, str(fault)) for fault in [*faults, *context.uncounted()]),
        *_check_backends(home, profiles),
        _check_packages(),
        *_check_sidebar(environ),
    ]


def _check_system() -> CheckResult:
    if system.has_linux_interfaces():
        return CheckResult("system", True, platform.system())
    weaker = "; ".join(system.limitations())
    return CheckResult("system", True, f"{platform.system()} by portable means, weaker than Linux: {weaker}")


def _check_store(home: Home) -> Iterator[CheckResult]:
    try:
        with Store.open(home) as store:
            yield from _check_rows(store)
            yield from _check_leftovers(home, store)
            yield from _check_strays(home, store)
    except AutotrainError as error:
        yield CheckResult("store", False, error.found, error.action)
        return
    mode = home.root.stat().st_mode & 0o777
    private = mode == 0o700 and home.root.stat().st_uid == os.getuid()
    yield CheckResult("home", private, f"{home.root}, mode {mode:o}", f"Run: chmod 700 {home.root}")
    free = shutil.disk_usage(home.root).free
    yield CheckResult(
        "disk", free > _FREE_BYTES_WANTED, f"{format_bytes(free)} free", "Free some space, or: %autotrain clean"
    )


def _check_rows(store: Store) -> Iterator[CheckResult]:
    if faults := store.damage():
        yield CheckResult("store", False, f"damaged: {'; '.join(faults[:3])}", "Run: %autotrain doctor --repair")
        return
    yield CheckResult("store", True, f"{count(len(store.ids()), 'experiment')}, journal {store.journal}")


def _check_leftovers(home: Home, store: Store) -> Iterator[CheckResult]:
    left = orphans.find(home, store)
    with no_submitter(home) as alone:
        lost = orphans.without_row(home, store) if alone else []
    if left:
        total, origins = orphans.summary(left)
        yield CheckResult("leftovers", False, f"{len(left)} ({total}): {origins}", "Run: %autotrain clean --yes")
    if lost:
        names = first_of([folder.name for folder in lost], _SHOWN)
        text = f"{count(len(lost), 'experiment')} of which only the files are left: {names}"
        by_hand = f"Take what you need out of {lost[0].parent}, then delete those folders."
        is_repairable = any(orphans.has_copy(home, folder) for folder in lost)
        yield CheckResult("lost", False, text, "Run: %autotrain doctor --repair" if is_repairable else by_hand)


def _check_strays(home: Home, store: Store) -> Iterator[CheckResult]:
    strays = recovery.find(home, store)
    if strays:
        named = first_of([*map(str, strays)], _SHOWN)
        action = "Bring them back: %autotrain doctor --repair   Or end them: %autotrain doctor --stop-strays"
        yield CheckResult("stray trials", False, f"{len(strays)} running that belong to no experiment: {named}", action)


def _check_manager(home: Home) -> CheckResult:
    status = manager.status(home)
    if not status.alive:
        return CheckResult("manager", True, "not running; the first submit starts it")
    if held := manager.stopped_by_signal(home):
        return CheckResult("manager", False, held)
    return CheckResult("manager", True, f"running, pid {status.pid}, {format_bytes(status.resident_bytes)}")


def _check_backends(home: Home, profiles: Profiles) -> list[CheckResult]:
    """Check all backends at the same time: one that does not answer keeps no other waiting."""

    def check(name: str) -> CheckResult:
        profile, faults = profiles.find(name)
        if profile is None:
            return CheckResult(f"backend {name}", False, "; ".join(map(str, faults)))
        return _check_backend(home, profile, is_expected=name in profiles.definitions or name == LOCAL.profile.name)

    names = profiles.names()
    with ThreadPoolExecutor(min(PROBES_AT_ONCE, len(names)), "probe") as threads:
        return list(threads.map(check, names))


def _check_backend(home: Home, profile: Profile, *, is_expected: bool) -> CheckResult:
    """Check one backend; one that no file defines may be missing on this machine, as Slurm is on most."""
    name = f"backend {profile.name}"
    try:
        probe, limits = Patience(LOOK_S).ask_one(profile.name, partial(_probe, profile, home))
    except AutotrainError as error:
        return CheckResult(name, False, error.found, error.action)
    parts = [part.rstrip(".") for part in (probe.reason, limits) if part]
    if not probe.usable and not is_expected:
        return CheckResult(name, True, f"not set up: {parts[0]}", applies=False)
    action = f"See what fails: %autotrain backends check {profile.name}"
    return CheckResult(name, probe.usable, "; ".join(parts), action)


def _probe(profile: Profile, home: Home) -> tuple[Probe, str]:
    """Return whether a backend can be used from here, and how it keeps limits."""
    with closing(backends.create(profile, BackendContext(home))) as backend:
        probe = backend.probe()
        return probe, backend.discover().limits if probe.usable else ""


def _check_sidebar(environ: Mapping[str, str]) -> Iterator[CheckResult]:
    """Check that JupyterLab loads the extension; nothing where there is no JupyterLab."""
    if importlib.util.find_spec("jupyterlab") is None:
        return
    argv = [sys.executable, "-c", _LIST_EXTENSIONS]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env=dict(environ))
    is_taken = re.search(r"^.*\bjupyter-autotrain v.*enabled.*OK", done.stdout + done.stderr, re.MULTILINE) is not None
    verdict = (
        "loads the extension" if is_taken else "does not load the extension: it is missing, disabled or incompatible"
    )
    action = (
        "See which: jupyter labextension list. It needs JupyterLab 4.2 or newer: pip install 'jupyter-autotrain[lab]'"
    )
    yield CheckResult("sidebar", is_taken, f"JupyterLab {importlib.metadata.version('jupyterlab')} {verdict}", action)


def _check_packages() -> CheckResult:
    found = []
    missing = []
    for package, extra in _OPTIONAL.items():
        try:
            found.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            missing.append(f"{package} (pip install 'jupyter-autotrain[{extra}]')")
    parts = [", ".join(found), f"not installed: {', '.join(missing)}" if missing else ""]
    return CheckResult("optional packages", True, "; ".join(filter(None, parts)))
