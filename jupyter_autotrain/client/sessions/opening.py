"""Opening a session, which is an experiment of one trial, and finding those that are open."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from jupyter_core.paths import jupyter_data_dir

from jupyter_autotrain import backends, capture
from jupyter_autotrain import header as headers
from jupyter_autotrain.client.experiment import Experiment
from jupyter_autotrain.client.lookup import listed
from jupyter_autotrain.client.rerun import Dialogue
from jupyter_autotrain.client.submission import Draft, capture_settings, submit_draft
from jupyter_autotrain.client.waiting import Progress
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import STANDARD, ExperimentSpec, Origin
from jupyter_autotrain.errors import AutotrainError

IDLE_S: Final = 4 * 3600.0
_KERNEL: Final = "jupyter_autotrain.client.sessions.kernel"
_SCRIPT: Final = (
    "from jupyter_autotrain.agent.session import serve\nserve(idle_s={idle_s!r}, shares_gpus={shares_gpus!r})\n"
)


@dataclass(frozen=True, slots=True)
class SessionRequest:
    """The session that is wanted.

    Attributes:
        name: Its name.
        place: A profile, or a backend that needs none.
        resources: As the section of a header: gpus, cpus, memory.
        idle_s: Seconds without a running cell after which it ends; 0: never.
        shares_gpus: Whether it has its GPUs only while a cell runs, and other trials have them between cells.
    """

    name: str
    place: str = "local"
    resources: Mapping[str, object] = field(default_factory=dict)
    idle_s: float = IDLE_S
    shares_gpus: bool = False


class _SessionDraft(Draft):
    """The draft of a session."""

    def spec(self) -> ExperimentSpec:
        """Return the spec of the session."""
        return replace(Draft.spec(self), mode=STANDARD)


def open_session(
    wanted: SessionRequest, home: Home, cwd: Path, origin: Origin | None, dialogue: Dialogue
) -> Experiment:
    """Open a session; when this returns it is on disk, and its trial is about to start.

    Args:
        wanted: What is wanted.
        home: Where it is kept.
        cwd: The folder whose settings files count.
        origin: The notebook that it is opened from.
        dialogue: Tells what is wrong with the place.

    Raises:
        HeaderError: The place or the resources are faulty.
        BackendUnavailableError: The place cannot run it.
        AutotrainError: One of this name is open.
    """
    if any(one.record.spec.name == wanted.name for one in open_sessions(home)):
        raise AutotrainError(
            f"A session {wanted.name!r} is open.",
            "A name that no open session has.",
            f"Use it: %%autotrain --session {wanted.name}, or close it: %autotrain session close {wanted.name}",
        )
    settings = {"name": wanted.name, "backend": wanted.place, "resources": dict(wanted.resources)}
    header = headers.from_mapping(settings, backends.header_context(cwd, os.environ))
    script = _SCRIPT.format(idle_s=wanted.idle_s, shares_gpus=wanted.shares_gpus)
    captured = capture.capture(script, {}, label="session", **capture_settings(header, cwd))
    draft = _SessionDraft(header, captured, wanted.name, origin or Origin(), cwd, os.environ)
    return submit_draft(draft, home, dialogue, Progress(str, str)).experiment


def open_sessions(home: Home) -> list[Experiment]:
    """Return the sessions that have not ended, newest first."""
    return [one for one, record in listed(home=home) if record.spec.mode == STANDARD and not record.state.is_final]


def find_session(home: Home, name: str = "") -> Experiment:
    """Return the open session of this name; without a name the newest.

    Raises:
        AutotrainError: There is none.
    """
    found = open_sessions(home)
    for one in found:
        if name in {"", one.name, one.record.spec.name}:
            return one
    raise AutotrainError(
        f"No session {name!r} is open." if name else "No session is open.",
        f"Open are: {', '.join(one.name for one in found) or 'none'}.",
        f"Open one: %autotrain session open {name or 'lab'}",
    )


def spec_folder(name: str) -> Path:
    """Return the folder of the kernel spec of a session."""
    return Path(jupyter_data_dir(), "kernels", f"autotrain-{name.lower()}")


def register(home: Home, name: str) -> None:
    """Add a kernel spec for a session: `Python on NAME` in the lists of kernels."""
    program = ["-m", _KERNEL, "-f", "{connection_file}", "--session", name, "--home", str(home.root)]
    spec = {
        "argv": [sys.executable, *program],
        "display_name": f"Python on {name}",
        "language": "python",
        "interrupt_mode": "message",
        "metadata": {"debugger": True},
    }
    folder = spec_folder(name)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kernel.json").write_text(json.dumps(spec, indent=1), encoding="utf-8")


def unregister(name: str) -> None:
    """Remove the kernel spec of a session, if there is one."""
    shutil.rmtree(spec_folder(name), ignore_errors=True)
