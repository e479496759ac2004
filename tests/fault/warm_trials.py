"""Parts that tests of warm trials share."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping
from pathlib import Path

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.pool import warm_list
from jupyter_autotrain.agent.pool.warm_list import WarmEntry
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.local import LocalBackend
from jupyter_autotrain.core.backend import BackendContext, JobRef
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import Placement
from jupyter_autotrain.testing import trial_of, wait_for_end, wait_until
from tests.fault.local_trials import text


def warm_backend(home: Home, **options: object) -> LocalBackend:
    """Return a backend that reuses processes, which end soon."""
    own: dict[str, object] = {"reuse": True, "reuse_idle": 1.0, **options}
    return LocalBackend(Profile("local", "local", own), BackendContext(home))


def cold_backend(home: Home) -> LocalBackend:
    return LocalBackend(Profile("local", "local", {"reuse": False}), BackendContext(home))


def start(
    backend: LocalBackend, home: Home, code: str, number: int, secrets: Mapping[str, str] | None = None, **spec: object
) -> JobRef:
    given = secrets or {}
    trial = trial_of(home, code, experiment_id=f"e{number}", secrets=tuple(given), **spec)  # type: ignore[arg-type]
    return backend.submit(trial, Placement(), given)


def said(backend: LocalBackend, home: Home, code: str, number: int, **spec: object) -> str:
    """Run a trial to its good end; gives what it printed."""
    ref = start(backend, home, code, number, **spec)  # type: ignore[arg-type]
    end = wait_for_end(backend, ref)
    assert end.state is TrialState.SUCCEEDED, (end.reason, text(backend, ref, wire.STDERR))
    return text(backend, ref)


def warm(home: Home) -> list[WarmEntry]:
    return warm_list.living(home.root / "warm")


def warm_pids(home: Home) -> list[int]:
    return [entry.process.pid for entry in warm(home)]


def await_imports(home: Home, *names: str) -> WarmEntry:
    """Wait until a warm process has tried its imports."""

    def found() -> WarmEntry | None:
        tried = [one for one in warm(home) if {*one.imports, *one.left_out} >= set(names)]
        return tried[0] if tried else None

    return wait_until(found, f"the imports {names}")


def end_warm(home: Home) -> None:
    """End all warm processes; none leaves anything."""
    warm_list.end_all(home.root / "warm")
    wait_until(lambda: not list(home.root.glob("warm/*/*")), "the end of warm processes, and of their folders")


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not Path(f"/proc/{pid}/exe").exists(), "the end of a process")


def values(text: str) -> object:
    """Return the last line, as JSON."""
    return json.loads(text.splitlines()[-1])
